"""Predict first: what the reader expects, locked before a run and shown beside what happened."""

from d2lmgpu.machine.lazy_names import lazy_names

SCRIPT = "predictions/web/predictions.js"
STYLE = "predictions/web/predictions.css"

__all__ = ["Prediction", "predictions"]
__getattr__ = lazy_names(__name__, {"Prediction": "question", "predictions": "table"})
