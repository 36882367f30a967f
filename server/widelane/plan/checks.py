"""What must hold between keys. A check sees the fields that could be read, and reports at their places."""

from __future__ import annotations

from math import prod

from widelane.models.nearest import nearest
from widelane.models.plan import Axis, NarrowKind, Pointer
from widelane.plan.drafts import Draft, Fields, environment
from widelane.plan.reading import Reading

_SHOWN_LOOP = 8

_NUMBERS: dict[NarrowKind, tuple[str, ...]] = {
    NarrowKind.ORDER_DEPENDENT: (),
    NarrowKind.RATE_LIMITED: ("calls", "calls_per_minute"),
    NarrowKind.LICENCE_SEATS: ("seats",),
    NarrowKind.SHARED_STATE: ("path",),
}


def pin_pins(fields: Fields, at: Reading, path: Pointer) -> None:
    """A pin names a lane, a model or a zone."""
    if not any(at.has(path, key) for key in ("lane", "model", "zone")):
        at.report_at(path, "missing_key", "This pin restricts nothing.", "Name a `lane`, `model` or `zone`.")


def narrow_has_number(fields: Fields, at: Reading, path: Pointer) -> None:
    """A reason to stay narrow has its number and no other's."""
    kind = fields.get("kind")
    if kind is None:
        return
    for key in _NUMBERS[kind]:
        if not at.has(path, key):
            fix = f"Add `{key}`: a reason without it can't be checked."
            at.report_at((*path, "kind"), "missing_key", f"`{kind}` needs `{key}`.", fix)
    for other, keys in _NUMBERS.items():
        for key in keys:
            if key not in _NUMBERS[kind] and at.has(path, key):
                message = f"`{key}` says nothing for `{kind}`."
                at.report_at((*path, key), "unknown_key", message, f"Remove it, or write `kind: {other}`.")


def source_is_one(fields: Fields, at: Reading, path: Pointer) -> None:
    """A source is a folder, or a repository at a commit."""
    if at.has(path, "path") and (at.has(path, "git") or at.has(path, "rev")):
        message = "A source is a `path`, or `git` with `rev`, not both."
        at.report_at(path, "contradiction", message, "Keep one form.")
    elif at.has(path, "git") != at.has(path, "rev"):
        missing = "rev" if at.has(path, "git") else "git"
        example = "rev: SHA` with the commit's whole SHA" if missing == "rev" else "git: URL`"
        at.report_at(path, "missing_key", f"`{missing}` is missing.", f"Write `{example}.")
    elif not at.has(path, "path") and not at.has(path, "git"):
        at.report_at(path, "missing_key", "This source names nothing.", "Write `{path: .}`, or `none`.")


def none_has_why(fields: Fields, at: Reading, path: Pointer) -> None:
    """`axes: none` says why."""
    if fields.get("axes") == () and not at.has(path, "why"):
        fix = 'Add `why: "each step needs the one before"` or the like; or name the axes.'
        at.report_at((*path, "axes"), "missing_key", "`axes: none` needs `why`.", fix)


def one_estimate(fields: Fields, at: Reading, path: Pointer) -> None:
    """Work is estimated once."""
    if at.has(path, "gpu_hours", "unit_minutes"):
        message = "`gpu_hours` and `unit_minutes` both say how much work this is."
        at.report_at((*path, "unit_minutes"), "contradiction", message, "Keep the one that was measured.")


def unit_minutes_count(fields: Fields, at: Reading, path: Pointer) -> None:
    """A list of unit minutes has one number a unit."""
    minutes: float | tuple[float, ...] | None = fields.get("unit_minutes")
    axes: tuple[Axis, ...] | None = fields.get("axes")
    if not isinstance(minutes, tuple) or axes is None:
        return
    units = prod(axis.size for axis in axes)
    if len(minutes) != units:
        message = f"`unit_minutes` lists {len(minutes)} units, but the axes have {units:,}."
        fix = "Give one number for each unit, the last axis varying fastest; or one number for all."
        at.report_at((*path, "unit_minutes"), "bad_value", message, fix)


def narrowest_is_not_wider(fields: Fields, at: Reading, path: Pointer) -> None:
    """min_width is at most width."""
    width, least = fields.get("width"), fields.get("min_width")
    if width is not None and least is not None and least > width:
        message = f"`min_width` {least} is more than `width` {width}."
        at.report_at((*path, "min_width"), "contradiction", message, f"Write at most {width}, or ask for more.")


def order_has_no_axes(fields: Fields, at: Reading, path: Pointer) -> None:
    """Work that depends on its order has no axes to shard along."""
    narrow, axes = fields.get("narrow_because"), fields.get("axes")
    if narrow is not None and narrow.kind is NarrowKind.ORDER_DEPENDENT and axes:
        names = ", ".join(axis.name for axis in axes if isinstance(axis, Axis))
        message = f"`order_dependent` work can't shard, but axes are named: {names}."
        fix = "Write `axes: none` with `why:`, or drop `narrow_because`."
        at.report_at((*path, "narrow_because"), "contradiction", message, fix)


def reloads_name_axes(fields: Fields, at: Reading, path: Pointer) -> None:
    """`reload_minutes` names axes of its own phase."""
    reloads: tuple[tuple[str, float], ...] = fields.get("reload_minutes", ())
    if reloads and at.has(path, "arms"):
        message = "`reload_minutes` is of a phase with its own axes, not of arms."
        at.report_at((*path, "reload_minutes"), "contradiction", message, "Make each arm that reloads a phase.")
        return
    axes: tuple[Axis, ...] | None = fields.get("axes")
    names = [axis.name for axis in axes or ()]
    # Axes that could not be read may have the name.
    unread = axes is None and at.has(path, "axes")
    for name, _ in () if unread else reloads:
        if name not in names:
            guess = nearest(name, names)
            fix = f"Did you mean `{guess}`?" if guess else "Name one of the phase's `axes`, or remove it."
            message = f"`reload_minutes` names `{name}`, which is no axis."
            at.report_at((*path, "reload_minutes", name), "unknown_axis", message, fix)


def arms_are_named_once(fields: Fields, at: Reading, path: Pointer) -> None:
    """Arms of a phase have different names."""
    _named_once(fields.get("arms", ()), at, "arms")


def phases_are_named_once(fields: Fields, at: Reading, path: Pointer) -> None:
    """Phases have different names."""
    _named_once(fields.get("phases", ()), at, "phases")


def _named_once(drafts: tuple[Draft, ...], at: Reading, what: str) -> None:
    seen: dict[str, Pointer] = {}
    for draft in drafts:
        name, here = draft.fields["name"], (*draft.path, "name")
        if name in seen:
            message = f"Two {what} are named `{name}`; the first is in line {at.places[seen[name]][0]}."
            at.report_at(here, "duplicate_name", message, "Give each its own name.")
        seen.setdefault(name, here)


def after_is_known(fields: Fields, at: Reading, path: Pointer) -> None:
    """`after` names other phases, without a loop."""
    drafts: tuple[Draft, ...] = fields.get("phases", ())
    names = {draft.fields["name"] for draft in drafts}
    # A phase that could not be read may be the one that is named.
    complete = ("phases", len(drafts)) not in at.places
    for draft in drafts:
        name = draft.fields["name"]
        for number, earlier in enumerate(draft.fields.get("after", ())):
            here = (*draft.path, "after", number)
            if earlier == name:
                at.report_at(here, "cycle", f"`{name}` waits for itself.", "Remove it from `after`.")
            elif earlier not in names and complete:
                guess = nearest(earlier, names - {name})
                fix = f"Did you mean `{guess}`?" if guess else "Name a phase of this plan, or remove it."
                at.report_at(here, "unknown_phase", f"`after` names `{earlier}`, which is no phase.", fix)
    _report_loops(drafts, at)


def _report_loops(drafts: tuple[Draft, ...], at: Reading) -> None:
    """One report for each loop; loops share no phase."""
    paths = {draft.fields["name"]: draft.path for draft in drafts}
    waits = {
        draft.fields["name"]: [
            name for name in draft.fields.get("after", ()) if name in paths and name != draft.fields["name"]
        ]
        for draft in drafts
    }
    done: set[str] = set()
    for start, first in waits.items():
        if start in done:
            continue
        trail, stack = {start: 0}, [(start, iter(first))]
        while stack:
            name, rest = stack[-1]
            earlier = next(rest, None)
            if earlier is None:
                done.add(name)
                del trail[name]
                stack.pop()
            elif earlier in trail:
                loop = [step for step, _ in stack[trail[earlier] :]]
                names = (
                    loop if len(loop) <= _SHOWN_LOOP else [*loop[: _SHOWN_LOOP // 2], "...", *loop[-_SHOWN_LOOP // 2 :]]
                )
                message = f"These {len(loop)} phases wait for each other: {' -> '.join([*names, earlier])}."
                at.report_at((*paths[name], "after"), "cycle", message, f"Remove `{earlier}` from `after` here.")
            elif earlier not in done:
                trail[earlier] = len(stack)
                stack.append((earlier, iter(waits[earlier])))


def accept_names_phases(fields: Fields, at: Reading, path: Pointer) -> None:
    """`accept` names a phase of the plan; in a phase's list, that phase."""
    drafts: tuple[Draft, ...] = fields.get("phases", ())
    names = {draft.fields["name"] for draft in drafts}
    complete = ("phases", len(drafts)) not in at.places
    for accept in fields.get("accept", ()):
        phase = accept.fields["phase"]
        if phase not in names and complete:
            guess = nearest(phase, names)
            fix = f"Did you mean `{guess}`?" if guess else "Name a phase of this plan."
            at.report_at((*accept.path, "phase"), "unknown_phase", f"`accept` names `{phase}`, which is no phase.", fix)
    for draft in drafts:
        for accept in draft.fields.get("accept", ()):
            if accept.fields.get("phase", draft.fields["name"]) != draft.fields["name"]:
                message = f"This list is of `{draft.fields['name']}`, but it names `{accept.fields['phase']}`."
                at.report_at((*accept.path, "phase"), "contradiction", message, "Remove `phase`, or move the entry.")


def secrets_are_not_env(fields: Fields, at: Reading, path: Pointer) -> None:
    """A variable is in `env` or in `secrets`."""
    for draft in fields.get("phases", ()):
        both = sorted(set(draft.fields.get("secrets", ())) & set(environment(draft, fields)))
        if both:
            message = f"In `secrets` and in `env`: {', '.join(both)}."
            fix = "Keep it in `secrets` alone, and its value out of the plan."
            at.report_at((*draft.path, "secrets"), "contradiction", message, fix)


def hold_has_something(fields: Fields, at: Reading, path: Pointer) -> None:
    """`hold` keeps the machine of a phase before it."""
    for draft in fields.get("phases", ())[:1]:
        if draft.fields.get("hold") and draft.path == ("phases", 0) and not draft.fields.get("after"):
            message = "`hold` keeps the previous phase's machine, but this is the first phase."
            at.report_at((*draft.path, "hold"), "contradiction", message, "Remove `hold`.")
