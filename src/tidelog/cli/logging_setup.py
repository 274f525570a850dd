"""What the broker says about itself: lines for people on a terminal, JSON for everybody else, on stderr."""

import logging
import sys

import structlog


def configure_logs(level: str, form: str) -> None:
    human = form == "human" or (form == "auto" and sys.stderr.isatty())
    # Plain tracebacks: the default ones print local variables, which are clients' data, and take 100 ms of the loop.
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if human
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=not human),
            *([] if human else [structlog.processors.format_exc_info]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
