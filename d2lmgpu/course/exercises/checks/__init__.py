"""What is right and wrong, a file for each chapter: to import one registers its exercises."""

from importlib import import_module

CHAPTERS = (
    "accumulation",
    "all_at_once",
    "allreduce",
    "batch_size",
    "cost_model",
    "data_parallelism",
    "ddp",
    "ddp_by_hand",
    "experts",
    "fits",
    "gluon",
    "gpt",
    "hangs",
    "how_fast",
    "lab",
    "long_sequences",
    "many_machines",
    "on_your_cluster",
    "out_of_memory",
    "overlap",
    "overnight",
    "pipelines",
    "profile",
    "ragged",
    "scratch",
    "settings",
    "sharding",
    "streams",
    "tensor_parallel",
    "this_machine",
    "torchrun",
    "traces",
    "unequal_devices",
    "when_a_machine_dies",
    "your_own_script",
)

for chapter in CHAPTERS:
    import_module(f"{__name__}.{chapter}")
