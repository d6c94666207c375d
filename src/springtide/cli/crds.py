"""`springtide crds`: the CRDs of every kind, generated from its types."""

from __future__ import annotations

from pathlib import Path

import click

from springtide.apis.crds import Flavour, all_crds, crd_files
from springtide.cli.console import as_data


@click.command("crds")
@click.option(
    "--flavour",
    type=click.Choice(["extended", "stock"]),
    default="extended",
    show_default=True,
    help="extended: with extension fields. stock: upstream's fields only.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a YAML file for each CRD into this folder instead of printing.",
)
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def command(flavour: str, into: Path | None, output: str) -> None:
    """Print the CRDs of every kind.

    Use the extended flavour where no other project owns a CRD. Where Karpenter, Karmada or Cluster Autoscaler has
    installed its own, keep that: extension fields then go into the annotation springtide.dev/extensions.

    \b
      springtide crds | kubectl apply --server-side -f -
    """
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        files = crd_files(Flavour(flavour))
        for name, text in files.items():
            (into / name).write_text(text, encoding="utf-8")
        click.echo(f"{len(files)} CRDs written to {into}", err=True)
    elif output == "json":
        click.echo(as_data({"apiVersion": "v1", "kind": "List", "items": all_crds(Flavour(flavour))}, "json"), nl=False)
    else:
        click.echo("---\n".join(crd_files(Flavour(flavour)).values()), nl=False)
