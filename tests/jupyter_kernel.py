"""A real Jupyter kernel, in which a test runs cells."""

from programs import program

KernelManager = program("jupyter_kernels").KernelManager


class Kernel:
    """A kernel in ``folder``; it ends with the context."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(self.folder))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        return self

    def __exit__(self, *_):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def _reply(self, cell):
        texts = []

        def output(message):
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                texts.append(content["text"])
            elif message["msg_type"] == "execute_result":
                texts.append(content["data"]["text/plain"])

        reply = self.client.execute_interactive(
            cell, timeout=90, output_hook=output, allow_stdin=False
        )
        return reply["content"], "".join(texts)

    def run(self, cell):
        """What a cell prints and, at its end, shows."""
        reply, output = self._reply(cell)
        assert reply["status"] == "ok", f"{reply['ename']}: {reply['evalue']}"
        return output

    def error(self, cell):
        """The error of a cell that fails, with its kind."""
        reply, output = self._reply(cell)
        assert reply["status"] == "error", output
        return f"{reply['ename']}: {reply['evalue']}"
