import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from elowen.lib.errors import Unavailable
from embeddings.calibration import Calibration, is_calibrated
from embeddings.config import endpoint
from embeddings.embedding import Run
from embeddings.measuring import Example, examples, measure_model, measure_store
from embeddings.models import EmbeddingSpace
from embeddings.space import EmbeddingSpaceChanged
from recall.calibration_report import Report
from recall.config import load_limits


class Command(BaseCommand):
    help = (
        "Measure how near texts are in the vectors of the embedding model in use, by known examples and by "
        "this store, and propose thresholds. Changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        known = sorted({row["language"] for row in examples()})
        parser.add_argument(
            "--languages", nargs="+", choices=known, help="what people write here; all by default"
        )
        parser.add_argument("--json", action="store_true", help="print all of it for programs")

    def handle(self, *args: object, **options: Any) -> None:
        rows = examples(options["languages"] or ())
        if not options["json"]:
            self.stderr.write(f"Embedding {len(rows)} examples …")
        try:
            report = report_on(rows)
        except (Unavailable, EmbeddingSpaceChanged) as error:
            raise CommandError(f"The model could not be measured: {error}") from error
        self.stdout.write(
            json.dumps(report.document(), indent=2) if options["json"] else "\n".join(report.lines())
        )


def report_on(rows: list[Example]) -> Report:
    run, limits = Run.start(), load_limits()
    place = endpoint(run.config)
    return Report(
        model=f"{place.provider}: {place.model}",
        is_known=is_calibrated(place.provider, place.model),
        languages=measure_model(run, rows),
        store=measure_store(EmbeddingSpace.objects.row_of(run.space)),
        in_force=Calibration(
            *(round(1000 * value) for value in (limits.floor, limits.paraphrase, limits.duplicate))
        ),
    )
