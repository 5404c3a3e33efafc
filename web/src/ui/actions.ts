// Actions of the toolbar and of the menus, as data: what does not fit into the toolbar stands in its menu.

import type { App } from "../app.svelte";
import type { Simple } from "../hands/keys";
import { LINE, type Entry, type Item } from "./menu";

/** An entry of the toolbar: the first ones stay longest when the window is narrow. */
export interface Tool extends Entry {
  id: string;
  icon: string;
}

function simple(app: App, what: Simple, more: Omit<Tool, "act" | "id"> & { id?: string }): Tool {
  return { id: what, ...more, act: () => app.commands.simple(what) };
}

/** Entries of the toolbar from left to right. */
export function tools(app: App): Tool[] {
  const { session, viewpoint, selection, panels, capture, timeline } = app;
  const closed = session.status !== "open";
  const fixed = session.isOnlooker || closed;
  const locked = session.readOnly || closed;
  const recording = session.stats?.recording ?? "";
  return [
    { id: "add", icon: "plus", label: "Add robot", key: "Insert", act: () => panels.open("add"), off: locked },
    simple(app, "step", { icon: "step", label: "One step", key: ".", off: fixed }),
    simple(app, "undo", { icon: "undo", label: "Undo", key: "Ctrl-Z", off: locked }),
    simple(app, "redo", { icon: "redo", label: "Do again", key: "Ctrl-Shift-Z", off: locked }),
    simple(app, "table", { icon: "table", label: "Table of the fleet", key: "Shift-T", on: panels.table }),
    simple(app, "clients", { icon: "clients", label: "Clients and topics: who drove it?", key: "Shift-I", on: panels.clients }),
    simple(app, "traffic", { icon: "traffic", label: "Traffic: who waits for whom?", key: "Shift-Y", on: panels.traffic }),
    simple(app, "goThere", {
      icon: "goal", label: "Go there: send the selected robots to a goal", key: "Shift-G", on: app.tools.tool === "goal",
      off: locked || (app.tools.tool !== "goal" && !app.fleet.drivable.length),
    }), // prettier-ignore
    simple(app, "home", { icon: "home", label: "Show everything", key: "h" }),
    simple(app, "follow", {
      icon: "follow", label: "Follow the selected robot", key: "c", on: viewpoint.follow !== null, off: !viewpoint.follow && !selection.names.length,
    }), // prettier-ignore
    { id: "edit", icon: "edit", label: "Edit the map", on: app.tools.tool === "edit", off: locked || timeline.isLooking, act: () => app.tools.set(app.tools.tool === "edit" ? "select" : "edit") },
    { id: "up", icon: "up", label: "Heading up: the followed robot points up", on: viewpoint.headingUp, off: !viewpoint.follow, act: () => viewpoint.toggleHeadingUp() },
    {
      id: "stick", icon: "stick", label: "Joystick", on: panels.stick, off: locked,
      act: () => {
        panels.stick = !panels.stick;
        if (panels.stick && !app.driving.driven()) app.notices.say("select a robot to drive");
      },
    }, // prettier-ignore
    simple(app, "measure", { icon: "ruler", label: "Measure: lengths, angles, areas", key: "r", on: app.tools.tool === "measure" }),
    simple(app, "reset", { icon: "reset", label: "All back to where they started", key: "Ctrl-P", off: locked || timeline.isLooking }),
    {
      id: "record", icon: "record", label: recording ? `End the recording ${recording}` : "Record the run", on: recording !== "", off: locked,
      act: () => app.recording.toggle(),
    }, // prettier-ignore
    simple(app, "snapshot", { icon: "camera", label: "Save a picture", key: "Ctrl-F" }),
    simple(app, "sequence", { icon: "film", label: "Save pictures at an interval", key: "Ctrl-G", on: capture.sequence !== null }),
    simple(app, "log", { icon: "log", label: "Log", key: "q", on: app.settings.showLog }),
    {
      id: "theme", icon: app.settings.theme === "dark" ? "sun" : "moon", label: "Light or dark",
      act: () => app.settings.setTheme(app.settings.theme === "dark" ? "light" : "dark"),
    }, // prettier-ignore
    simple(app, "heat", { icon: "heat", label: "Heat maps", key: "Shift-H", on: panels.heat }),
    simple(app, "people", { icon: "people", label: "People", key: "Shift-P", on: panels.people }),
    simple(app, "inset", { icon: "inset", label: "Overview", key: "Shift-O", on: panels.inset }),
    simple(app, "rename", { icon: "tag", label: "Rename the selected robots", key: "F2", off: locked || timeline.isLooking || !app.fleet.drivable.length }),
    simple(app, "values", { icon: "values", label: "Values under the pointer", key: "Shift-V", on: panels.values }),
  ];
}

/** The menu "File". */
export function files(app: App): Item[] {
  const { session, panels, commands } = app;
  const locked = session.readOnly || session.status !== "open";
  const closed = session.isOnlooker || session.status !== "open";
  const recording = session.stats?.recording ?? "";
  const kept = session.stats?.kept ?? 0;
  const items: (Item | false)[] = [
    { label: "Open a map or world …", icon: "map", key: "Ctrl-L", act: () => panels.open("map"), off: locked },
    { label: "Read the map's file again", key: "Ctrl-R", act: () => commands.simple("reload"), off: locked || !app.maps.source },
    { label: "Save the world …", icon: "save", key: "Ctrl-S", act: () => commands.simple("save"), off: closed },
    LINE,
    { label: "Export a picture (PNG)", icon: "camera", key: "Ctrl-F", act: () => commands.simple("snapshot") },
    { label: "Export a picture (JPEG)", act: () => app.capture.save("jpeg", app.clock.info.time) },
    { label: "Export pictures at an interval …", icon: "film", key: "Ctrl-G", act: () => commands.simple("sequence") },
    { label: "Export a movie …", icon: "movie", act: () => (panels.dialog = "movie"), off: closed || !app.timeline.state },
    LINE,
    recording
      ? { label: `End the recording ${recording}`, icon: "record", act: () => app.recording.toggle(), off: closed }
      : { label: "Record the run", icon: "record", act: () => app.recording.toggle(), off: locked },
    { label: "Choose what is recorded …", act: () => panels.open("record"), off: locked || recording !== "" },
    kept > 0 && { label: `Save the last ${kept} s`, act: () => app.recording.save(), off: locked },
    { label: "Download recordings and movies …", icon: "download", act: () => (panels.dialog = "downloads"), off: closed },
    LINE,
    { label: "Print …", icon: "print", act: () => app.print() },
    { label: "Share this view …", icon: "share", act: () => app.share() },
    LINE,
    { label: "End the simulator …", icon: "close", key: "Ctrl-Q", act: () => (panels.dialog = "exit"), off: session.isOnlooker },
  ];
  return items.filter((item) => item !== false);
}
