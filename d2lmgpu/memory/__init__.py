"""What a step of training takes of a GPU's memory: events of storages, the allocator, the cards."""
