"""The shop of `tidelog demo`: its events, and the pipeline that processes them."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidelog.spark.pipelines.project import Project, load_project

CLICKS, ORDERS, REVENUE = "clicks", "orders", "revenue-per-minute"
_PRODUCTS = [
    (1, "espresso machine", "kitchen", 249.0),
    (2, "pour-over kettle", "kitchen", 59.9),
    (3, "burr grinder", "kitchen", 119.0),
    (4, "trail shoes", "outdoor", 129.5),
    (5, "rain jacket", "outdoor", 179.0),
    (6, "head torch", "outdoor", 34.9),
    (7, "linen sheets", "home", 89.0),
    (8, "reading lamp", "home", 44.5),
]
_PAGES = ["/", "/search", "/product", "/cart", "/checkout", "/help"]
_COUNTRIES = ["DE", "FR", "IN", "JP", "BR", "US", "NG", "SE"]


class Event(NamedTuple):
    topic: str
    key: str
    value: bytes
    timestamp_ms: int


def events(seed: int, start_ms: int, end_ms: int, count: int) -> Iterator[Event]:
    """`count` events, ordered by time. About one in five is an order, and one in fifty orders is bad."""
    chance = random.Random(seed)  # noqa: S311  (not a secret)
    step = (end_ms - start_ms) / max(1, count)
    for number in range(count):
        at = int(start_ms + number * step + chance.random() * step)
        customer = f"c{int(chance.paretovariate(1.2)) % 500:03}"  # a few customers are frequent, most are rare
        if chance.random() < 0.8:
            click = {"customer": customer, "page": chance.choices(_PAGES, (30, 20, 25, 12, 8, 5))[0], "at_ms": at}
            yield Event(CLICKS, customer, json.dumps(click).encode(), at)
            continue
        product = chance.choice(_PRODUCTS)
        order = {
            "id": f"o{seed}-{number}",
            "customer": customer,
            "country": chance.choice(_COUNTRIES),
            "product": product[0],
            "quantity": chance.choices((1, 2, 3, 5), (70, 20, 7, 3))[0],
            "price": product[3],
            "at_ms": at,
        }
        yield Event(ORDERS, customer, _spoiled(chance, order), at)


def _spoiled(chance: random.Random, order: dict[str, object]) -> bytes:
    fate = chance.random()
    if fate < 0.007:
        return json.dumps(order).encode()[:-9]  # cut off
    if fate < 0.014:
        order["quantity"] = -1
    elif fate < 0.02:
        del order["customer"]
    return json.dumps(order).encode()


_SPEC = """\
name: shop
libraries:
  - glob:
      include: definitions/**
configuration:
  spark.tidelog.bootstrap.servers: "{bootstrap}"
"""

_PYTHON = '''\
"""Orders of a shop: enriched orders go to a table, revenue per minute to a topic, bad orders to the dead letters."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidelog.spark.pipelines import to_topic, topic

spark = SparkSession.active()

topic(
    "orders",
    schema="""id string NOT NULL, customer string NOT NULL, country string, product int NOT NULL,
              quantity int NOT NULL, price double NOT NULL, at_ms bigint NOT NULL""",
    expect={"quantity is positive": "quantity > 0"},
    event_time="timestamp_millis(at_ms)",
)


@dp.table(comment="Orders with their products, as Parquet.")
def enriched_orders():
    products = spark.read.table("products")
    return (
        spark.readStream.table("orders")
        .join(products, "product")
        .selectExpr("id", "customer", "country", "name", "category", "quantity", "quantity * price AS total",
                    "_time AS ordered_at")
    )


@to_topic("revenue-per-minute", key="minute")
def revenue():
    return (
        spark.readStream.table("orders")
        .groupBy(F.window("_time", "1 minute"))
        .agg(F.count("*").alias("orders"), F.round(F.sum(F.expr("quantity * price")), 2).alias("revenue"))
        .select(F.date_format("window.start", "yyyy-MM-dd'T'HH:mm").alias("minute"), "orders", "revenue")
    )
'''


def write_project(folder: Path, bootstrap: str) -> Project:
    (folder / "definitions").mkdir(parents=True, exist_ok=True)
    values = ",\n  ".join(f"({number}, '{name}', '{kind}')" for number, name, kind, _ in _PRODUCTS)
    (folder / "definitions" / "products.sql").write_text(
        f"CREATE TEMPORARY VIEW products AS SELECT * FROM VALUES\n  {values}\nAS products(product, name, category);\n"  # noqa: S608  (our own words)
    )
    (folder / "definitions" / "shop.py").write_text(_PYTHON)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(_SPEC.format(bootstrap=bootstrap))
    return load_project(spec)
