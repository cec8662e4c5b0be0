"""Networks that are cut over ranks: what their parts are, and what may be said of each."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from scripts_of import FOLDER
from soaking import sample

from d2lmgpu.watch import WatchError
from d2lmgpu.watch.check.by_parts import Held, NotComparedError, compare, drawn, is_cut, slice_of
from d2lmgpu.watch.check.parts import UPDATES
from d2lmgpu.watch.check.run import check

NAMES = ["emb", "up", "bias", "down"]
SHAPES = [(5, 4), (8, 4), (8,), (4, 8)]
CUT = [None, 0, 0, 1]  # along which dimension
STEPS = 3


def whole_run(rate=0.1, seed=0):
    """{update: {"before", "grads", "after"}} of one process, arrays by parameter."""
    g = np.random.default_rng(seed)
    weights = [g.normal(size=shape) for shape in SHAPES]
    weights[2] = np.zeros(8)  # as many scripts begin: no slice of it can be told from another
    updates = []
    for _ in range(STEPS):
        grads = [g.normal(size=shape) for shape in SHAPES]
        after = [w - rate * grad for w, grad in zip(weights, grads)]
        updates.append({"before": weights, "grads": grads, "after": after})
        weights = after
    return updates


def held(ranks, loss=2.0, rows="same", names=NAMES, terms=None, lr=0.1, optimizers=1):
    """A ``Held`` of what each rank has in each update; ``rows(t, rank)`` says which rows."""
    seen = rows if callable(rows) else lambda t, rank: f"{rows} {t}"
    losses = loss if isinstance(loss, list) else [loss] * len(ranks)
    reports, files = [], {}
    for rank, updates in enumerate(ranks):
        for t, kept in enumerate(updates):
            arrays = {
                f"{name}-{i}": array
                for name, list_of in kept.items()
                for i, array in enumerate(list_of)
                if array is not None
            }
            file = io.BytesIO()
            np.savez(file, terms=np.array(terms or [False] * len(names)), **arrays)
            files[f"kept-parts-{t}-{rank}"] = file.getvalue()
        reports.append(
            {
                "rank": rank,
                "names": names,
                "double": True,
                "optimizers": optimizers,
                "updates": [{"loss": losses[rank], "lr": [lr]}] * len(updates),
                "inputs": [{"Net.0": {seen(t, rank): 1}} for t in range(len(updates))],
            }
        )
    return Held(SimpleNamespace(reports=reports, files=files))


def parts(updates, k=2, cut=CUT, change=lambda what, i, rank, array: array):
    """What k ranks hold of the whole arrays."""

    def part(what, i, rank, array):
        if array is not None and cut[i] is not None:
            array = np.array_split(array, k, axis=cut[i])[rank]
        return change(what, i, rank, array)

    return [
        [
            {
                what: [part(what, i, rank, a) for i, a in enumerate(list_of)]
                for what, list_of in update.items()
            }
            for update in updates
        ]
        for rank in range(k)
    ]


def finding_of(many, single=None):
    return compare(many, single or held([whole_run()]))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_parts_that_train_as_the_whole_are_equal(k):
    finding = finding_of(held(parts(whole_run(), k)))
    assert (finding.equal, finding.defect, finding.steps) == (True, "none", STEPS)
    assert finding.difference < 1e-12


def test_a_dtensors_terms_are_summed_and_losses_may_be_terms():
    """The whole gradient of a norm under sequence parallelism is a sum, and so is the loss."""

    def halved(what, i, rank, array):
        return array * (0.25, 0.75)[rank] if what == "grads" and i == 0 else array

    terms = [True, False, False, False]
    assert finding_of(held(parts(whole_run(), change=halved), terms=terms, loss=[0.5, 1.5])).equal
    finding = finding_of(held(parts(whole_run(), change=halved), loss=[0.5, 1.5]))
    assert not finding.equal and finding.defect == "backward-sum"


def test_a_gradient_that_each_rank_has_a_term_of_is_named_with_its_parameter():
    def term(what, i, rank, array):
        return array / 2 if what == "grads" and i == 0 else array

    finding = finding_of(held(parts(whole_run(), change=term)))
    assert (finding.equal, finding.defect) == (False, "backward-sum")
    assert finding.detail == (
        "the loss is that of one device; 1 of 4 gradients are wrong, emb by 50%; the last is emb"
    )
    assert finding.steps == 1 and finding.difference == pytest.approx(0.5)


def test_only_one_rank_is_wrong_in_its_own_part():
    def wrong(what, i, rank, array):
        return array + 1 if what == "grads" and (i, rank) == (3, 1) else array

    finding = finding_of(held(parts(whole_run(), change=wrong)))
    assert finding.defect == "backward-sum" and "the last is down" in finding.detail


def test_another_loss_is_a_matter_of_the_forward_pass():
    def wrong(what, i, rank, array):
        return array * (1 + i) if what == "grads" else array

    finding = finding_of(held(parts(whole_run(), change=wrong), loss=2.5))
    assert finding.defect == "forward-sum"
    assert finding.detail == "the loss is 2.5 on rank 0 and 2 on one device"


def test_gradients_that_are_all_as_many_times_too_large_are_no_missing_sum():
    def twice(what, i, rank, array):
        return array * 2 if what == "grads" else array

    finding = finding_of(held(parts(whole_run(), change=twice)))
    assert (finding.equal, finding.defect) == (False, "unknown")
    assert finding.detail == "the gradients of the ranks are 2 and 2 times those of one device"


def test_ranks_that_clip_by_the_norms_of_their_own_parts_are_told_so():
    def clipped(what, i, rank, array):
        return array * (0.5, 0.25)[rank] if what == "grads" else array

    finding = finding_of(held(parts(whole_run(), change=clipped)))
    assert (finding.equal, finding.defect) == (False, "norm")
    assert finding.detail.endswith("are 0.5 and 0.25 times those of one device")


def test_another_rate_or_another_update_is_told():
    finding = finding_of(held(parts(whole_run(rate=0.2)), lr=0.2))
    assert finding.defect == "unknown" and "the rate is 0.2, not 0.1" in finding.detail
    finding = finding_of(held(parts(whole_run(rate=0.2))))
    assert finding.defect == "unknown" and "updated weights are not" in finding.detail


def test_a_later_update_that_differs_is_found():
    kept = parts(whole_run())
    kept[1][2]["grads"][1] = kept[1][2]["grads"][1] + 1
    assert finding_of(held(kept)).steps == 3 and not finding_of(held(kept)).equal


@pytest.mark.parametrize(
    "reason, many",
    [
        ("no slice", lambda: held(parts(whole_run(seed=1)))),
        (
            "gives each rank rows of its own",
            lambda: held(parts(whole_run()), rows=lambda t, rank: f"{t} {rank}"),
        ),
        (
            "in update 2 one process takes other rows",
            lambda: held(parts(whole_run()), rows=lambda t, rank: "same 0"),
        ),
        ("several optimizers", lambda: held(parts(whole_run()), optimizers=2)),
        ("other names", lambda: held(parts(whole_run()), names=["a", *NAMES[1:]])),
        ("hold the same part of up", lambda: held([parts(whole_run())[0]] * 2)),
        ("not all of what", lambda: held([parts(whole_run(), 4)[0], parts(whole_run(), 4)[1]])),
        (
            "some have a gradient",
            lambda: held(
                parts(
                    whole_run(),
                    change=lambda what, i, rank, a: (
                        None if what == "grads" and (i, rank) == (0, 1) else a
                    ),
                )
            ),
        ),
    ],
)
def test_what_cannot_be_compared_accuses_nobody(reason, many):
    with pytest.raises(NotComparedError, match=reason):
        finding_of(many())


def test_rows_that_nobody_saw_are_not_compared():
    many, single = held(parts(whole_run())), held([whole_run()])
    for rank in (*many.ranks, *single.ranks):
        rank["inputs"] = [{} for _ in range(STEPS)]
    with pytest.raises(NotComparedError, match="not seen"):
        compare(many, single)


@pytest.mark.parametrize(
    "reason, changes",
    [
        (None, {}),
        (None, {"notes": {"noise": True}, "draws": [{"state": "a", "step": 1}]}),  # its rows
        ("Dropout", {"notes": {"dropout": True}}),
        ("random numbers", {"net_draws": True}),
        ("random numbers", {"notes": {"noise": True}}),
        ("random numbers", {"notes": {"noise": True}, "of one": [{"state": "b", "step": 1}]}),
    ],
)
def test_what_is_drawn_beside_the_net_alike_is_no_reason_to_differ(reason, changes):
    many, single = held(parts(whole_run())), held([whole_run()])
    of_one = changes.pop("of one", None)
    for rank in (*many.ranks, *single.ranks):
        rank |= {"notes": {}, "draws": [], "net_draws": False} | changes
    if of_one:
        single.ranks[0]["draws"] = of_one
    reason_given = drawn(many, single)
    assert reason_given is None if reason is None else reason in reason_given


def test_a_slice_is_found_where_it_lies_or_not_at_all():
    whole = np.arange(24.0).reshape(6, 4)
    assert slice_of(whole, whole) == (None, 0)
    assert slice_of(whole[2:4], whole) == (0, 2) and slice_of(whole[:, 3:], whole) == (1, 3)
    assert slice_of(whole[::2], whole) is None and slice_of(whole[1:3, 1:3], whole) is None
    assert slice_of(whole + 1e-9, whole) is None and slice_of(whole.T, whole) is None
    assert slice_of(np.zeros(2), np.zeros(6), expected=4) == (0, 4)
    assert slice_of(np.zeros(2), np.zeros(6), expected=5) is None  # any slice is like it
    assert is_cut([[2, 4]], [[6, 4]]) and not is_cut([[6, 4]], [[6, 4]])


CUTS = {
    "right_tensor-parallel": ("same", "none"),
    "right_tensor-parallel-plan": ("same", "none"),
    "backward-sum_1": ("different", "backward-sum"),
    "backward-sum_2": ("different", "backward-sum"),
    "backward-sum_3": ("different", "backward-sum"),
    "forward-sum_1": ("different", "forward-sum"),
    "forward-sum_2": ("different", "forward-sum"),
}


@pytest.mark.parametrize("name", sample([*CUTS][:4], CUTS))
def test_a_network_that_a_script_cuts(name):
    verdict = check(FOLDER / f"{name}.py")
    assert (verdict.outcome, verdict.defect) == CUTS[name] and verdict.double
    if verdict.equal:
        assert verdict.difference < 1e-12 and verdict.updates == UPDATES
        return
    assert verdict.difference > 0.01 and verdict.reason is None
    line = (FOLDER / verdict.where.split(":")[0]).read_text().splitlines()
    assert "backward()" in line[int(verdict.where.split(":")[1]) - 1]
    if verdict.defect == "backward-sum":
        assert "the loss is that of one device" in verdict.detail
        last = {"backward-sum_2": "inp.bias", "backward-sum_3": "2.down"}.get(name, "1.bias")
        assert verdict.detail.endswith(f"the last is {last}")


def test_parts_that_are_no_slices_are_not_compared():
    outcomes = FOLDER.parent / "outcomes"
    with pytest.raises(WatchError, match=r"(?s)down\.weight|up\.weight") as raised:
        check(outcomes / "parts_from_own_seeds.py")
    assert "no slice" in str(raised.value) and "with one seed" in str(raised.value)
