"""A price service on FastAPI, most of whose requests are fast: docs/stories.md finds out why its p99 is not.

    uvicorn prices_api:app

With FIXED=1 in the environment it reads new prices in a thread.
"""
import asyncio
import contextlib
import csv
import decimal
import os
import pathlib
import tempfile
import time

import fastapi

PRICES = pathlib.Path(tempfile.gettempdir()) / "prices.csv"
MAX_AGE = 8.0
FIXED = "FIXED" in os.environ

prices, read_at = {}, 0.0
connections = asyncio.Semaphore(8)  # of the database


def read_prices():
    with PRICES.open(newline="") as file:
        return {row["number"]: decimal.Decimal(row["price"]) for row in csv.DictReader(file)}


async def current_prices():
    global prices, read_at
    if time.monotonic() - read_at > MAX_AGE:
        read_at = time.monotonic()
        prices = await asyncio.to_thread(read_prices) if FIXED else read_prices()
    return prices


async def in_stock(number):
    async with connections:
        await asyncio.sleep(0.004)  # the database answers
        return number % 100


@contextlib.asynccontextmanager
async def lifespan(app):
    with PRICES.open("w") as file:
        file.write("number,price\n")
        file.writelines(f"{number},{number % 900}.99\n" for number in range(600_000))
    await current_prices()
    yield
    PRICES.unlink()


app = fastapi.FastAPI(lifespan=lifespan)


@app.get("/price/{number}")
async def price(number: int):
    known = await current_prices()
    return {"price": known.get(str(number)), "in stock": await in_stock(number)}


@app.get("/health")
async def health():
    return {"status": "ok"}
