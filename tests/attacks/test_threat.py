import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from linocut.attacks import Dice, ThreatModel
from linocut.errors import InputError


def nearest_by_solver(point, natural, eps):
    """The nearest allowed point by a general solver, in float64."""
    found = minimize(
        lambda v: ((v - point) ** 2).sum(),
        natural,
        jac=lambda v: 2 * (v - point),
        bounds=[(0, 1)] * len(natural),
        constraints=[
            {
                "type": "ineq",
                "fun": lambda v: eps**2 - ((v - natural) ** 2).sum(),
                "jac": lambda v: 2 * (natural - v),
            }
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    return found.x


def test_the_l2_projection_is_the_nearest_point_of_ball_and_box(count):
    generator = np.random.default_rng(0)
    clipping_lost = 0.0
    for trial in range(count(60, 1000)):
        natural = generator.random(6).astype(np.float32)
        if trial % 2:
            natural = natural.round()  # black and white: the box stops half of every step
        point = (natural + generator.normal(size=6) * generator.uniform(0.05, 3)).astype(np.float32)
        eps = float(generator.uniform(0.05, 1.5))
        x, z = (torch.from_numpy(v).view(1, 1, 2, 3) for v in (natural, point))
        threat = ThreatModel("l2", eps)
        found = threat.project(z, x)
        assert threat.contains(found, x).all()
        best = nearest_by_solver(point.astype(float), natural.astype(float), eps)
        distance = np.linalg.norm(found.numpy().ravel() - point)
        assert distance <= np.linalg.norm(best - point) + 1e-5
        scaled = natural + (point - natural) * min(1, eps / np.linalg.norm(point - natural))
        clipping_lost = max(clipping_lost, np.linalg.norm(scaled.clip(0, 1) - point) - distance)
    assert clipping_lost > 0.01  # scaling and clipping would have failed this test


def test_the_linf_projection_is_the_nearest_on_a_grid():
    natural = torch.tensor([0.0, 0.45, 1.0]).view(1, 1, 1, 3)
    threat = ThreatModel("linf", 0.125)
    grid = torch.linspace(-0.5, 1.5, 33)
    allowed = torch.stack([torch.tensor(v) for v in itertools.product(grid.tolist(), repeat=3)]).view(-1, 1, 1, 3)
    allowed = allowed[threat.contains(allowed, natural.expand(len(allowed), -1, -1, -1))]
    points = torch.randn(50, 1, 1, 3, generator=torch.Generator().manual_seed(0))
    found = threat.project(points, natural.expand_as(points))
    assert threat.contains(found, natural.expand_as(points)).all()
    nearest = torch.cdist(points.flatten(1), allowed.flatten(1)).amin(dim=1)
    assert ((found - points).flatten(1).norm(dim=1) <= nearest + 1e-6).all()


def test_projections_are_idempotent_and_leave_allowed_points_alone(threat):
    natural = torch.rand(40, 3, 5, 7, generator=torch.Generator().manual_seed(0)).mul(1.4).sub(0.2).clamp(0, 1)
    points = natural + 0.5 * torch.randn(40, 3, 5, 7, generator=torch.Generator().manual_seed(1))
    once = threat.project(points, natural)
    assert threat.contains(once, natural).all()
    assert torch.allclose(threat.project(once, natural), once, atol=1e-6)
    assert torch.allclose(threat.project(natural, natural), natural, atol=0)


def test_zero_eps_leaves_only_the_image(threat):
    natural = torch.rand(3, 3, 4, 4)
    point = ThreatModel(threat.norm, 0.0).project(torch.rand(3, 3, 4, 4), natural)
    assert torch.equal(point, natural)
    assert torch.equal(ThreatModel(threat.norm, 0.0).random_start(natural, Dice.of(0, 3)), natural)


def test_random_starts_fill_the_ball(threat):
    natural = torch.full((200, 3, 6, 6), 0.5)
    start = threat.random_start(natural, Dice.of(0, 200))
    assert threat.contains(start, natural).all()
    assert len(start.unique(dim=0)) == 200
    offset = (start - natural).flatten(1)
    assert abs(offset.mean()) < 0.02 * threat.eps
    if threat.norm == "linf":
        assert abs(offset.std() - threat.eps / 3**0.5) < 0.01 * threat.eps
    else:  # in 108 dimensions the radius of a uniform draw has mean 108/109
        assert abs(offset.norm(dim=1).mean() / threat.eps - 108 / 109) < 0.003


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_the_steepest_step_has_unit_length_at_any_scale_of_the_gradient(threat, scale):
    gradient = torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(0)) * scale
    step = threat.steepest(gradient).flatten(1)
    length = step.abs().amax(dim=1) if threat.norm == "linf" else step.norm(dim=1)
    assert torch.allclose(length, torch.ones(5), atol=1e-6)
    assert (step * gradient.flatten(1) >= 0).all()


def test_a_gradient_of_zero_makes_no_step(threat):
    assert not threat.steepest(torch.zeros(2, 1, 3, 3)).any()


def test_contains_knows_ball_box_and_nan(threat):
    natural = torch.full((4, 1, 2, 2), 0.999)
    points = natural.clone()
    points[1] += 0.01  # out of the box
    points[2, 0, 0, 0] -= 2 * threat.eps
    points[3, 0, 0, 0] = torch.nan
    assert threat.contains(points, natural).tolist() == [True, False, False, False]


@pytest.mark.parametrize(("norm", "eps"), [("l1", 0.1), ("linf", -1), ("linf", 8.0), ("l2", float("nan"))])
def test_impossible_threats_are_refused(norm, eps):
    with pytest.raises(InputError):
        ThreatModel(norm, eps)


@pytest.mark.parametrize("eps", [0.3, 1.74, 3.3])
def test_a_plain_picture_moved_as_a_whole_stays_in_the_ball(eps):
    """Sums of thousands of equal squares in float32 are some millionths off, and equal values are rounded alike."""
    threat = ThreatModel("l2", eps)
    natural = (torch.arange(1, 256).float() / 255)[:, None, None, None].expand(-1, 3, 32, 32).contiguous()
    for points in (torch.zeros_like(natural), torch.ones_like(natural)):
        length = threat.distance(threat.project(points, natural).double(), natural.double())
        assert float(length.max()) <= eps
        assert float(length[threat.distance(points, natural) > eps].min()) > eps * (1 - 2e-5)
