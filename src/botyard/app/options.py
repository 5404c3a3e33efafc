"""The options of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from botyard.geometry import Pose


class RobotChoice(NamedTuple):
    """A robot asked for: model, and its name if one was given."""

    model: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, as typed; see the command for their meanings."""

    @property
    def unattended(self) -> bool:
        """Nobody is there to be asked (CLI-017, CLI-022)."""
        return self.noninteractive or self.no_gui

    def chosen_robots(self, world_has_some: bool) -> Sequence[RobotChoice]:
        """The robots of the command line; a P3-DX when nobody names any."""
        return self.robots or (() if self.factories or world_has_some else (RobotChoice("p3dx", None),))

    map: str | None
    map_argument: str | None
    stageworld: str | None
    nomap: bool
    robots: tuple[RobotChoice, ...]
    factories: tuple[str, ...]
    port: int
    noninteractive: bool
    no_gui: bool
    gui_port: int | None
    gui_address: str
    gui_host: tuple[str, ...]
    gui_token: str | None
    no_browser: bool
    start_dialog: bool
    fullscreen_gui: bool
    maximize_gui: bool
    minimize_gui: bool
    lite_graphics: bool
    no_graphics: bool
    start: Pose | str | None
    update_interval: int | None
    update_sim_time: int | None
    bind_to_address: str
    odom_error_mode: str | None
    no_error: bool
    resolution: int | None
    ignore_command: tuple[int, ...]
    warn_unsupported_commands: bool
    seed: int | None
    sensor_noise: str | None
    fast: bool
    duration: float | None
    snapshot: str | None
    save_scenario: str | None
    force: bool
    robot_name: str
    srisim_compat: bool
    no_srisim_laser_compat: bool
    gripper_layout: str
    simulate_batteries: bool
    allow_client_exit: bool
    read_only: bool
    no_network_discovery: bool
    mdns: bool
    ros1: bool
    ros_master: str | None
    ros_names: str
    ros_time: str | None
    ros_wait: bool
    ros2: bool
    ros_domain_id: int | None
    ros_distro: str | None
    zenoh: bool
    zenoh_router: bool
    cmd_vel_timeout: float
    ambf: str | None
    adf: tuple[str, ...]
    ambf_watchdog: float
    ambf_port: int
    ambf_namespace: str | None
    ambf_min_freq: float | None
    ambf_max_freq: float | None
    cwd: str | None
    map_dir: tuple[str, ...]
    job_time: float
    job_memory: int
    log_file: str | None
    log_file_max_size: int | None
    config: str | None
    print_config: bool
    log_format: str
    html: bool
    log_timing_stats: float | None
    metrics_port: int | None
    less_verbose: bool
    daemonize: bool
    no_crash_handler: bool
    no_crash_debug: bool
    no_crash_restart: bool
    restarting_after_crash: bool
    state_file: str | None
    supervisor: int | None
    log_packets_received: bool
    log_movement_sent: bool
    record_packets: str | None
    max_read: tuple[str, ...]
    lines_chunksize: int
    points_chunksize: int
    json: bool
    controller: str | None
    joystick: str | None
    compat: str | None
    threads: int | None
    verbose: bool
