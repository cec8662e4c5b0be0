"""What the lab exports: a record that says when and from what it was made."""

import trains

from d2lmgpu.lab.model import LabModel
from d2lmgpu.records import store


def test_the_date_of_an_export_is_not_that_of_the_first_one(monkeypatch):
    lab = LabModel({"Python": trains.finishes})
    dates = iter([10, 11])

    class Clock:
        @staticmethod
        def now(zone):
            return Clock()

        def strftime(self, how):
            return f"{next(dates)}:00"

    monkeypatch.setattr(store, "datetime", Clock)
    assert [lab.to_record()["date"] for _ in range(2)] == ["10:00", "11:00"]
