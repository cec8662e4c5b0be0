"""Times of streams in a trace as Kineto writes it, against sampled moments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmgpu.torch.streams import covered, gpu_times

# Names as in public traces: of NCCL 2.17 and before, and since then.
NCCL = (
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
)
COMPUTE = ("ampere_sgemm_128x64_nn", "void at::native::vectorized_elementwise_kernel<4>")
AT = 1712195495506161  # microseconds, of a public trace


def event(start, length, name, stream=7, device=0, cat="kernel"):
    """A span of a stream: the process is the device there, and the thread the stream."""
    args = {"device": device, "stream": stream, "correlation": 135139}
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": device,
        "tid": stream,
        "ts": AT + start,
        "dur": length,
        "args": args,
    }


# What else there is: a kernel's launch on the CPU, NCCL's label above its kernel, names, arrows.
BESIDE = [
    {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": AT, "args": {"name": "stream 7 "}},
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 99,
        "tid": 99,
        "ts": AT,
        "dur": 500,
        "args": {"correlation": 135139},
    },
    {
        "ph": "X",
        "cat": "gpu_user_annotation",
        "name": "nccl:all_reduce",
        "pid": 0,
        "tid": 20,
        "ts": AT,
        "dur": 400,
        "args": {"External id": 12},
    },
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": AT, "id": 1, "bp": "e"},
    {
        "ph": "X",
        "cat": "gpu_memcpy",
        "name": "Memcpy DtoD (Device -> Device)",
        "pid": 0,
        "tid": 7,
        "ts": AT,
        "dur": 300,
        "args": {"device": 0, "stream": 7, "bytes": 256},
    },
]

spans = st.tuples(st.integers(0, 60), st.integers(0, 20))
kernels = st.lists(
    st.builds(
        lambda span, name, stream, device: event(*span, name, stream, device),
        spans,
        st.sampled_from(NCCL + COMPUTE),
        st.sampled_from((7, 20)),
        st.integers(0, 1),
    ),
    max_size=12,
)


def sampled(events, keep):
    """Microseconds in which one of the kept events runs: one sample in the middle of each."""
    kept = [e for e in events if keep(e)]
    return sum(
        any(e["ts"] <= AT + now + 0.5 < e["ts"] + e["dur"] for e in kept) for now in range(90)
    )


@given(kernels, st.randoms())
def test_times_are_those_of_sampled_moments(events, random):
    mixed = events + BESIDE
    random.shuffle(mixed)
    gpus = gpu_times({"traceEvents": mixed})
    assert set(gpus) == {e["args"]["device"] for e in events}

    def about(value):
        return pytest.approx(value / 1e6, abs=1e-12)  # the clock of 1.7e15 is not rounded away

    for device, times in gpus.items():
        own = [e for e in events if e["args"]["device"] == device]
        is_nccl = {True: lambda e: "nccl" in e["name"], False: lambda e: "nccl" not in e["name"]}
        assert times["NCCL"] == about(sampled(own, is_nccl[True]))
        assert times["computing"] == about(sampled(own, is_nccl[False]))
        alone = sampled(own, lambda e: True) - sampled(own, is_nccl[False])
        assert times["exposed"] == about(alone)
        assert set(times["streams"]) == {e["args"]["stream"] for e in own}
        for stream, kinds in times["streams"].items():
            its = [e for e in own if e["args"]["stream"] == stream]
            assert kinds["NCCL"] == about(sampled(its, is_nccl[True]))
            assert kinds["computing"] == about(sampled(its, is_nccl[False]))


def test_a_trace_of_the_cpu_has_no_gpu():
    assert gpu_times({"traceEvents": BESIDE}) == {}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=8))
def test_each_moment_counts_once(spans):
    expected = sum(any(a <= now < b for a, b in spans) for now in range(31))
    assert covered(map(tuple, spans)) == expected
