"""Entry of the runner file. The zygote's way in is apart, so that it loads little."""

from __future__ import annotations


def main(arguments: list[str]) -> int:
    """Run a verb; returns the exit code."""
    if arguments[:1] == ["zygote"]:
        from .zygote import serve  # noqa: PLC0415 - the zygote must not load the scheduler

        return serve(int(arguments[1]))
    if arguments[:1] == ["queue"]:
        from .queue.verbs import main as queue  # noqa: PLC0415 - likewise

        return queue(arguments[1:])
    if arguments[:1] == ["attempt"]:
        from .alone import main as alone  # noqa: PLC0415 - likewise

        return alone(arguments[1:])
    from .command import main as command  # noqa: PLC0415 - and the other way round

    return command(arguments)
