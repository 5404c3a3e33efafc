"""Gymnasium environments of many worlds:

Gymnasium's checkers, repeatable episodes, and the three autoreset modes.
"""

from __future__ import annotations

import copy
import importlib.util
import math
import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from botyard.errors import ArgumentError, NotNowError
from botyard.learning import Environment, Navigate, SocialNavigate, VectorEnvironment
from botyard.learning.catalog import TASKS
from botyard.learning.tasks.robots import lidar_robot
from botyard.model.kinematics import Axes, MotionLimits
from tests.waiting import PATIENCE


def task(**options: Any) -> Navigate:
    """Return a small task with few rays."""
    return Navigate(rays=16, maps=3, **options)


def vector(n: int = 4, **options: Any) -> VectorEnvironment:
    return VectorEnvironment(task(max_steps=options.pop("max_steps", 20)), n, **options)


def test_gymnasiums_checker() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(
            gymnasium.make(
                "botyard/Navigate-v0", rays=8, maps=2, render_mode="rgb_array"
            ).unwrapped
        )


def test_names_of_gymnasium() -> None:
    envs = gymnasium.make_vec(
        "botyard/Navigate-v0",
        num_envs=3,
        vectorization_mode="vector_entry_point",
        rays=8,
        maps=2,
    )
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (3, 13) and envs.observation_space.contains(
        observations
    )
    envs.close()


def test_worlds_are_what_single_environments_are() -> None:
    """World i with seed s + i equals a single environment with that seed, over
    episodes.
    """
    n, seed = 3, 40
    many = vector(n, autoreset_mode=AutoresetMode.DISABLED)
    singles = [Environment(task(max_steps=20)) for _ in range(n)]
    observed, _ = many.reset(seed=seed)
    rows = [env.reset(seed=seed + i)[0] for i, env in enumerate(singles)]
    dice = np.random.default_rng(1)
    for _ in range(60):
        assert (observed == np.array(rows)).all()
        actions = dice.uniform(-1, 1, (n, 2)).astype(np.float32)
        observed, rewards, terminated, truncated, _ = many.step(actions)
        ended = terminated | truncated
        for i, env in enumerate(singles):
            rows[i], reward, one_terminated, one_truncated, _ = env.step(actions[i])
            assert (reward, one_terminated, one_truncated) == (
                rewards[i],
                terminated[i],
                truncated[i],
            )
            if ended[i]:
                rows[i] = env.reset()[0]

        if ended.any():
            observed, _ = many.reset(options={"reset_mask": ended})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("copy", [True, False])
def test_modes_of_beginning_again(copy: bool, threads: int) -> None:
    """All three modes have the same episodes; they differ in the step at which the next
    one starts.
    """
    kinds = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
    for mode in kinds:
        envs = vector(5, autoreset_mode=mode, copy=copy, threads=threads, max_steps=12)
        plain = vector(5, autoreset_mode=AutoresetMode.DISABLED, max_steps=12)
        assert envs.metadata["autoreset_mode"] is mode
        seen, _ = envs.reset(seed=9)
        wanted, _ = plain.reset(seed=9)
        dice = np.random.default_rng(2)
        waits = np.zeros(5, bool)
        for _ in range(40):
            assert (seen == wanted).all()
            actions = dice.uniform(-1, 1, (5, 2))
            seen, rewards, terminated, truncated, infos = envs.step(actions)
            if (
                mode is AutoresetMode.NEXT_STEP
                # Worlds whose episode has ended wait for a step, in which they are reset.
            ):
                kept = plain.worlds.state.copy()
                goals = plain.task.goals.copy()  # type: ignore[attr-defined]
                wanted, expected, one, two, _ = plain.step(actions)
                if waits.any():
                    plain.worlds.state[waits] = kept[waits]
                    plain.task.goals[waits] = goals[waits]  # type: ignore[attr-defined]
                    wanted, _ = plain.reset(options={"reset_mask": waits})

                expected = np.where(waits, 0.0, expected)
                one, two = one & ~waits, two & ~waits
                waits = one | two
            else:
                wanted, expected, one, two, _ = plain.step(actions)
                ended = one | two
                assert ("final_obs" in infos) == ended.any()
                if ended.any():
                    assert (infos["_final_obs"] == ended).all()
                    assert (infos["final_obs"][ended] == wanted[ended]).all()
                    wanted, _ = plain.reset(options={"reset_mask": ended})

            assert (
                (rewards == expected).all()
                and (terminated == one).all()
                and (truncated == two).all()
            )

        envs.close()


def test_what_navigate_rewards() -> None:
    """Driving straight to a goal ahead gives progress and the goal; driving into a wall
    gives less.
    """
    from botyard.model.mapbuilder import MapBuilder

    walls = MapBuilder("hall").rectangle(0.0, 0.0, 8.0, 4.0).scene()
    one = Environment(Navigate(rays=9, scenes=walls, max_steps=200))
    one.reset(seed=3)
    one.worlds.reset(poses=[[1.0, 2.0, 0.0]])
    one.task.goals[:] = (5.0, 2.0)  # type: ignore[attr-defined]
    one.task._measure()  # type: ignore[attr-defined]
    total, terminated, info = 0.0, False, {}
    while not terminated:
        observed, reward, terminated, truncated, info = one.step(np.array([1.0, 0.0]))
        total += reward
        assert not truncated

    assert info["success"] and total == pytest.approx(3.5 + 5.0, abs=0.5)
    assert observed[9] == pytest.approx(0.05, abs=0.011) and observed[
        10
    ] == pytest.approx(1.0, abs=0.01)
    assert observed[4] == pytest.approx((8.0 - 4.5) / 8.0, abs=0.1), "the ray ahead"
    one.worlds.reset(poses=[[6.0, 2.0, 0.0]])
    one.task.goals[:] = (1.0, 2.0)  # type: ignore[attr-defined]
    rewards = []
    while True:
        _, reward, terminated, _, info = one.step(np.array([1.0, 0.0]))
        rewards.append(reward)
        if terminated:
            break

    assert not info["success"] and rewards[-1] < -4.5 and len(rewards) < 25


def test_options_that_nobody_reads_are_refused() -> None:
    envs, one = vector(), Environment(task())
    for reset in (envs.reset, one.reset):
        reset(seed=1, options={})
        with pytest.raises(
            ArgumentError,
            match=r'options: expected (none|reset_mask), found "reset_msk"',
        ):
            reset(seed=2, options={"reset_msk": np.ones(4, bool)})

    assert envs.worlds.seeds.tolist() == [1, 2, 3, 4], "it changes nothing"


class Graded(Navigate):
    """A task with a method, as curricula have them."""

    grade = 0

    def set_grade(self, grade: int) -> int:
        self.grade += grade
        return self.grade


def test_attributes_and_methods_as_in_gymnasium() -> None:
    """Results equal `SyncVectorEnv`'s, one for each world."""
    envs = VectorEnvironment(
        Graded(rays=16, maps=3, max_steps=20), 3, render_mode="rgb_array"
    )
    plain = gymnasium.vector.SyncVectorEnv(
        [lambda: Environment(task(max_steps=20), render_mode="rgb_array")] * 3
    )
    for each in (envs, plain):
        each.reset(seed=3)
    for name in (
        "observation_space",
        "action_space",
        "render_mode",
        "metadata",
        "spec",
    ):
        assert envs.get_attr(name) == envs.call(name) == plain.get_attr(name), name

    pictures = zip(envs.call("render"), plain.call("render"), strict=True)
    assert all(np.array_equal(a, b) for a, b in pictures)
    assert envs.call("set_grade", 2) == (2, 2, 2) and envs.get_attr("grade") == (
        2,
        2,
        2,
    ), "it is called once"
    envs.set_attr("max_steps", 2)
    assert envs.get_attr("max_steps") == (2, 2, 2)
    truncated = [envs.step(np.zeros((3, 2)))[3].tolist() for _ in range(2)]
    assert truncated == [[False] * 3, [True] * 3]
    envs.set_attr("goal_m", [0.7, 0.7, 0.7])
    assert envs.task.goal_m == 0.7  # type: ignore[attr-defined]
    for values, text in (
        ([1, 2, 3], "one value for all worlds"),
        ([1, 1], "a value for each of 3 worlds, found 2"),
    ):
        with pytest.raises(ArgumentError, match=text):
            envs.set_attr("max_steps", values)

    with pytest.raises(ArgumentError, match="one that was used to make the worlds"):
        envs.set_attr("scenes", None)
    with pytest.raises(
        AttributeError,
        match='Graded has no attribute "max_step"; did you mean "max_steps"',
    ):
        envs.set_attr("max_step", 5)

    for name in ("reset", "_far", "nothing"):
        with pytest.raises(AttributeError):
            envs.call(name)

    assert vector().call("render") == (None,) * 4


def test_what_is_wrong() -> None:
    with pytest.raises(ArgumentError, match=r"task: expected one of .*Navigate"):
        VectorEnvironment("Nothing")
    with pytest.raises(ArgumentError, match="render_mode"):
        Environment("Navigate", render_mode="human", rays=4, maps=1)
    envs = vector()
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.zeros((4, 2)))
    for wrong in (-1, [1, 2], [1, 2, 3, -4]):
        with pytest.raises((ArgumentError, gymnasium.error.Error), match=r"[Ss]eed"):
            envs.reset(seed=wrong)

    envs.reset(seed=[4, 3, 2, 1])
    assert envs.worlds.seeds.tolist() == [4, 3, 2, 1]
    for mask in (np.zeros(4, bool), np.ones(3, bool), [1, 0, 0, 0]):
        with pytest.raises(ArgumentError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})

    with pytest.raises(ArgumentError, match="autoreset_mode: expected one of NextStep"):
        vector(autoreset_mode="same")
    for actions in (np.zeros((3, 2)), np.full((4, 2), np.nan), "ab", None):
        with pytest.raises(ArgumentError, match="actions"):
            envs.step(actions)


def test_pictures() -> None:
    envs = vector(2, render_mode="rgb_array")
    envs.reset(seed=1)
    pictures = envs.render()
    assert (
        pictures is not None
        and len(pictures) == 2
        and pictures[0].shape[2] == 3
        and pictures[0].std() > 5
    )
    assert (pictures[0] != pictures[1]).any()


@pytest.mark.parametrize("name", TASKS)
def test_pictures_have_one_size_and_the_marks_of_the_task(name: str) -> None:
    env: Any = gymnasium.make(f"botyard/{name}-v0", render_mode="rgb_array").unwrapped
    env.reset(seed=1)
    env.action_space.seed(1)
    shapes = {np.shape(env.render())}
    for _ in range(20):
        env.step(env.action_space.sample())
    picture = env.render()
    assert {np.shape(picture)} == shapes == {(480, 480, 3)}
    marked = np.size(env.task.marks(0)) > 0
    assert marked is (name != "Follow")
    env.task.marks = lambda world: ()
    assert (np.asarray(env.render()) != picture).any() == marked


@pytest.mark.parametrize(
    "program",
    [
        'import gymnasium; env = gymnasium.make("botyard.learning:botyard/Navigate-v0", rays=8)',
        'import gymnasium, botyard.learning; env = gymnasium.make_vec("botyard/Navigate-v0", num_envs=2, rays=8)',
    ],
)
def test_gymnasium_knows_the_names_in_a_new_process(program: str) -> None:
    end = "print(type(env.unwrapped).__module__)"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; {end}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("botyard.learning.environments\n", "")


def test_worlds_without_a_seed_in_the_list_begin_their_next_episode() -> None:
    envs, single = vector(3), Environment(task(max_steps=20))
    envs.reset(seed=[4, 3, 2])
    seen, _ = envs.reset(seed=[7, None, 2])
    for world, resets in ((0, [7]), (1, [3, None]), (2, [2])):
        for seed in resets:
            expected, _ = single.reset(seed=seed)
        assert (seen[world] == expected).all(), world

    first, again = vector(2), vector(2)
    assert not (
        first.reset(seed=[None, 5])[0][0] == again.reset(seed=[None, 5])[0][0]
    ).all(), "it is drawn"


def test_infos_are_the_callers() -> None:
    """Results of a step do not change later, even if a task returns an array that it
    keeps.
    """
    envs = VectorEnvironment(Keeping(rays=16, maps=3), 2)
    envs.reset(seed=1)
    infos = [envs.step(np.zeros((2, 2)))[4]["count"] for _ in range(2)]
    assert [one.tolist() for one in infos] == [[1, 1], [2, 2]]


class Keeping(Navigate):
    """A task that counts steps in its own array."""

    def begin(self, w: Any) -> None:
        super().begin(w)
        self.count = np.zeros(len(w), np.int64)

    def act(self, w: Any, actions: Any) -> None:
        super().act(w, actions)
        self.count += 1

    def info(self, w: Any) -> dict[str, Any]:
        return {**super().info(w), "count": self.count}


def test_a_task_serves_one_environment() -> None:
    """Two environments that write into the same goals would get wrong rewards or
    shapes: the first one raises.
    """
    shared = task()
    first, second = VectorEnvironment(shared, 6), VectorEnvironment(shared, 2)
    second.reset(seed=1)
    with pytest.raises(NotNowError, match="its own task"):
        first.reset(seed=1)
    third = Environment(copy.deepcopy(shared))
    with pytest.raises(NotNowError, match="its own task"):
        gymnasium.vector.SyncVectorEnv([lambda: Environment(shared)] * 2).reset(seed=1)
    with pytest.raises(NotNowError, match="its own task"):
        second.step(np.zeros((2, 2)))
    assert third.reset(seed=1)[0].shape == (21,)


def test_arrays_that_are_not_copied_outlast_a_reset() -> None:
    """The last observation of an episode is needed after the reset that follows it."""
    envs = vector(2, copy=False, autoreset_mode="Disabled", max_steps=1)
    envs.reset(seed=1)
    for _ in range(3):
        given = envs.step(np.ones((2, 2)))
        kept = [np.copy(array) for array in given[:4]]
        begun, _ = envs.reset(options={"reset_mask": np.array([True, False])})
        first = begun.copy()
        envs.step(-np.ones((2, 2)))
        assert (
            all((now == was).all() for now, was in zip(given[:4], kept, strict=True))
            and (begun == first).all()
        )
        envs.reset(options={"reset_mask": np.ones(2, bool)})


def test_refused_actions_use_no_set_of_arrays_up() -> None:
    envs = vector(2, copy=False)
    envs.reset(seed=1)
    given = envs.step(np.ones((2, 2)))[0]
    kept = given.copy()
    with pytest.raises(ArgumentError, match="finite"):
        envs.step(np.full((2, 2), np.nan))
    envs.step(-np.ones((2, 2)))
    assert (given == kept).all()


def test_the_first_reset_is_of_all_worlds() -> None:
    envs = vector(2, autoreset_mode="Disabled")
    with pytest.raises(ArgumentError, match="all 2 worlds in the first reset, found 1"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    assert (envs.reset(seed=np.array([4, 5]))[0] == vector(2).reset(seed=4)[0]).all(), (
        "an array of seeds"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"rays": 2.5},
        {"maps": 0},
        {"goal_m": math.nan},
        {"goal_m": -1.0},
        {"max_steps": 0},
        {"max_steps": "a"},
        {"robot": "p3dx"},
        {
            "robot": replace(
                lidar_robot(8), limits=MotionLimits(max_speed=Axes(1.0, 0.0, 0.0))
            )
        },
    ],
)
def test_options_of_navigate_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        Navigate(**options)
    if "robot" not in options:
        with pytest.raises(ArgumentError, match=next(iter(options))):
            SocialNavigate(**options)


@pytest.mark.parametrize("method", ["observe", "reward", "done"])
def test_tasks_that_return_instead_of_writing_are_told(method: str) -> None:
    """The most frequent mistake:

    without the error no value would be observed or rewarded, and no episode would end.
    """

    class Returning(Navigate):
        pass

    def returns(self: Navigate, w: Any, *arrays: Any) -> Any:
        return arrays if method == "done" else np.ones(len(w))

    setattr(Returning, method, returns)
    returns.__name__ = method
    envs = VectorEnvironment(Returning(rays=4, maps=1), 2)

    def used() -> None:
        envs.reset(seed=1)
        envs.step(np.zeros((2, 2)))

    with pytest.raises(
        ArgumentError,
        match=rf"Returning\.{method}: expected a method that writes into its array arguments",
    ):
        used()


def test_actions_that_return_commands_instead_of_writing_them_are_told() -> None:
    class Returning(Navigate):
        def act(self, w: Any, actions: Any) -> Any:
            return actions

    envs = VectorEnvironment(Returning(rays=4, maps=1), 2)
    envs.reset(seed=1)
    with pytest.raises(
        ArgumentError,
        match=r"Returning\.act: expected a method that writes into w\.command",
    ):
        envs.step(np.zeros((2, 2)))


def test_what_is_known_of_ends_is_of_worlds_that_have_ended() -> None:
    """The infos have the form of Gymnasium's vector environment."""
    n = 4
    many = vector(n, autoreset_mode="SameStep")
    singles = gymnasium.vector.SyncVectorEnv(
        [lambda: Environment(task(max_steps=20)) for _ in range(n)],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    for envs in (many, singles):
        envs.reset(seed=5)
    dice, seen = np.random.default_rng(3), 0
    for _ in range(60):
        actions = dice.uniform([0.2, -1.0], 1.0, (n, 2)).astype(np.float32)
        ended = many.step(actions)[4], singles.step(actions)[4]
        assert [("final_info" in infos) for infos in ended] in (
            [True, True],
            [False, False],
        )
        if "final_info" not in ended[0]:
            continue
        mine, wanted = (infos["final_info"] for infos in ended)
        seen += 0 < ended[0]["_final_info"].sum() < n
        for name in ("success", "distance"):
            mask = mine[f"_{name}"]
            assert (mask == wanted[f"_{name}"]).all() and (
                mask == ended[0]["_final_info"]
            ).all()
            assert (mine[name][mask] == wanted[name][mask]).all()

    assert seen, "some worlds have ended, others not"


@pytest.mark.parametrize("copy", [True, False])
def test_the_end_is_told_as_it_was_and_stays(copy: bool) -> None:
    """For a task that returns an array that it keeps, and that `on_reset` and later
    steps overwrite.
    """

    class Restarting(Keeping):
        def on_reset(self, w: Any, mask: Any, rng: Any) -> None:
            super().on_reset(w, mask, rng)
            self.count[mask] = 0

    envs = VectorEnvironment(
        Restarting(rays=4, maps=1, max_steps=3), 2, autoreset_mode="SameStep", copy=copy
    )
    envs.reset(seed=1)
    infos = [envs.step(np.zeros((2, 2)))[4] for _ in range(4)]
    assert [one["count"].tolist() for one in infos] == [[1, 1], [2, 2], [0, 0], [1, 1]]
    assert infos[2]["final_info"]["count"].tolist() == [3, 3]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_time_limit_of_gymnasium_is_one_of_many_worlds_too(
    mode: AutoresetMode,
) -> None:
    """For ids with a limit and for an explicit limit, as with a single environment."""
    name = "tests/Limited-v0"
    gymnasium.register(
        name,
        entry_point="botyard.learning.environments:Environment",
        vector_entry_point="botyard.learning.environments:VectorEnvironment",
        kwargs={"task": "Navigate", "rays": 4, "maps": 1},
        max_episode_steps=7,
    )
    try:
        made = [
            gymnasium.make_vec(name, num_envs=3, autoreset_mode=mode),
            gymnasium.make_vec(
                "botyard/Navigate-v0",
                num_envs=3,
                autoreset_mode=mode,
                rays=4,
                maps=1,
                max_episode_steps=7,
            ),
        ]
        single = gymnasium.make(name)
    finally:
        del gymnasium.registry[name]

    single.reset(seed=2)
    cut = [single.step(np.zeros(2))[3] for _ in range(8)]
    assert cut == [False] * 6 + [True] * 2
    for envs in made:
        envs.reset(seed=2)
        ends = [envs.step(np.zeros((3, 2)))[3].tolist() for _ in range(8)]
        assert ends[:7] == [[False] * 3] * 6 + [[True] * 3]
        assert ends[7] == [mode is AutoresetMode.DISABLED] * 3

    with pytest.raises(
        ArgumentError, match="max_episode_steps: expected a whole number of at least 1"
    ):
        vector(max_episode_steps=0)


def test_movies_run_in_real_time() -> None:
    for step, wanted in ((0.1, 10), (0.5, 2), (0.02, 50), (3.0, 1)):
        slow = task()
        slow.step = step
        assert Environment(copy.deepcopy(slow)).metadata["render_fps"] == wanted
        assert VectorEnvironment(slow, 2).metadata["render_fps"] == wanted


def test_a_single_environment_names_its_own_shape() -> None:
    env = Environment(task())
    env.reset(seed=1)
    for action in ([0.1], 0.5, [[0.0, 0.0]]):
        with pytest.raises(
            ArgumentError,
            match=r"^action: expected an array of shape \(2,\), found one of shape",
        ):
            env.step(action)


def test_the_number_of_environments_is_named() -> None:
    with pytest.raises(
        ArgumentError,
        match="num_envs: expected a whole number from 1 to 1000000, found 10000000",
    ):
        vector(10_000_000)


def test_specs_with_a_mode_as_a_text_are_written_as_json() -> None:
    envs = gymnasium.make_vec(
        "botyard/Navigate-v0", num_envs=2, autoreset_mode="SameStep", rays=4, maps=1
    )
    spec = envs.spec
    assert spec is not None and '"autoreset_mode": "SameStep"' in spec.to_json()
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_infos_are_a_dict() -> None:
    class Silent(Navigate):
        def info(self, w: Any) -> Any:
            return None

    with pytest.raises(
        ArgumentError, match=r"Silent\.info: expected a dict, found None"
    ):
        Environment(Silent(rays=4, maps=1)).reset(seed=1)


@pytest.mark.parametrize("values", [np.zeros(1), 3.0, [1, 2]])
def test_infos_have_a_row_for_each_world(values: Any) -> None:
    class Telling(Navigate):
        def info(self, w: Any) -> dict[str, Any]:
            return {"told": values}

    with pytest.raises(
        ArgumentError,
        match=r'Telling\.info: "told": expected an array with a row for each of 2 worlds',
    ):
        VectorEnvironment(Telling(rays=4, maps=1), 2).reset(seed=1)


def test_a_robot_of_a_task_may_be_a_word_and_copy_is_a_flag() -> None:
    class Word(Navigate):
        def __init__(self) -> None:
            super().__init__(rays=4, maps=1)
            self.robots = "p3dx"  # type: ignore[assignment]

    assert VectorEnvironment(Word(), 2).worlds.names == ("p3dx",)
    with pytest.raises(ArgumentError, match="copy: expected"):
        VectorEnvironment("Navigate", 2, copy="no")  # type: ignore[arg-type]


def test_what_has_to_be_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing Gymnasium or stable-baselines3 is reported before worlds are created."""
    import botyard.learning as learning
    from botyard.learning.stablebaselines import _class

    with monkeypatch.context() as patch:
        for name in ("Environment", "VectorEnvironment"):
            patch.delitem(vars(learning), name, raising=False)
        for name in ("botyard.learning.environments", "botyard.learning.batch"):
            patch.delitem(sys.modules, name, raising=False)
        patch.setitem(sys.modules, "gymnasium", None)
        with pytest.raises(
            ModuleNotFoundError,
            match=r'needs the extra "learning", which is not installed; to install it: .*install',
        ):
            _ = learning.VectorEnvironment

    if importlib.util.find_spec("stable_baselines3") is None:
        _class.cache_clear()
        with pytest.raises(ModuleNotFoundError, match="pip install stable-baselines3"):
            learning.stable_baselines("Navigate", 10**9)
