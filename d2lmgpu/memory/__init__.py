"""What a step of training takes of a GPU's memory: when storages come and go, the allocator."""
