"""The names of d2l that are not handed on, by what they do.

The list is made from the source of d2l.torch and d2l.mxnet by ``tests/dropin/what_d2l_does.py``,
and a test compares the two. What is in neither list nor ``d2l`` of this version is not known.
"""

VERSION = "1.0.3"  # of d2l, as in requirements.txt

REFUSED = {
    "trains or evaluates on one device": (
        "HPOTrainer",
        "Trainer",
        "evaluate_accuracy",
        "evaluate_loss",
        "hpo_objective_lenet",
        "train_batch_ch13",
        "train_ch11",
        "train_ch13",
        "train_ch6",
        "train_concise_ch11",
        "train_ranking",
        "train_recsys_rating",
        "train_seq2seq",
        "update_D",
        "update_G",
    ),
    "fetches or loads data of its own": (
        "BananasDataset",
        "CTRDataset",
        "DataModule",
        "FashionMNIST",
        "MTFraEng",
        "SNLIDataset",
        "SyntheticRegressionData",
        "TimeMachine",
        "TokenEmbedding",
        "VOCSegDataset",
        "download",
        "download_extract",
        "evaluate_ranking",
        "extract",
        "get_data_ch11",
        "load_array",
        "load_data_bananas",
        "load_data_imdb",
        "load_data_nmt",
        "load_data_ptb",
        "load_data_snli",
        "load_data_voc",
        "load_data_wiki",
        "read_csv_labels",
        "read_data_bananas",
        "read_data_ml100k",
        "read_data_nmt",
        "read_imdb",
        "read_ptb",
        "read_snli",
        "read_voc_images",
        "split_and_load_ml100k",
    ),
    "picks devices itself": ("predict_sentiment", "predict_snli"),
    "is all of d2l": ("d2l",),
}

# What stands for load_array(arrays, batch_size, is_train), in each framework's own words.
LOADERS = {
    "d2l.torch": "torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*arrays), batch_size, "
    "shuffle=is_train)",
    "d2l.mxnet": "gluon.data.DataLoader(gluon.data.ArrayDataset(*arrays), batch_size, "
    "shuffle=is_train)",
}


def why_refused(name: str, module: str) -> str:
    """What ``name`` of ``module`` ("d2l.torch" or "d2l.mxnet") does and may not; else ""."""
    if name == "load_array":
        return (
            f"it knows nothing of several devices. Instead: {LOADERS[module]}, and then "
            "split_batch(X, y, devices) for each batch"
        )
    return next((f"it {deed}" for deed, names in REFUSED.items() if name in names), "")
