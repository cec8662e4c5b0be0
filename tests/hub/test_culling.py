"""Forgotten GPUs come back by themselves."""

from running_hub import RunningHub, wait_until


def test_an_idle_server_is_stopped_and_its_gpu_is_free_again(tmp_path):
    with RunningHub(tmp_path, without_lab=True, HUB_ACCOUNTS="one", HUB_IDLE_TIMEOUT="4") as hub:
        hub.set_gpus("GPU-a")
        assert hub.start_server("ada", 1) == ["GPU-a"]
        wait_until(lambda: not hub.servers(), 60, "the idle server is gone")
        assert hub.start_server("grace", 1) == ["GPU-a"]
