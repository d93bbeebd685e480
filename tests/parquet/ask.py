"""Answers questions about tables in Parquet files, in DuckDB or in Spark.

    ask.py duckdb|spark DIRECTORY < QUESTIONS

DIRECTORY has a file NAME.parquet for each table, or a directory NAME with files of many traces. QUESTIONS is a JSON list
of SQL texts. Prints a JSON list with the rows of each, or null where a question fails.
"""

import decimal
import json
import os
import sys


def plain(value):
    """A value as JSON has it: numbers as SQLite has them, 63 bits and a sign."""
    if isinstance(value, decimal.Decimal):
        value = int(value)
    if isinstance(value, int) and value > (1 << 63) - 1:
        return value - (1 << 64)
    return value


def tables(directory):
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        yield name.removesuffix(".parquet"), path


def duckdb(directory):
    import duckdb as database

    connection = database.connect()
    for name, path in tables(directory):
        files = path if os.path.isfile(path) else path + "/**/*.parquet"
        scan = f"read_parquet('{files}', hive_partitioning = {not os.path.isfile(path)})"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {scan}")
    return lambda sql: connection.execute(sql).fetchall()


def spark(directory):
    from pyspark.sql import SparkSession

    # Two executors in processes of their own.
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("trace")
    builder = builder.config("spark.sql.shuffle.partitions", 4).config("spark.ui.enabled", False)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for name, path in tables(directory):
        session.read.parquet(path).createOrReplaceTempView(name)
    return lambda sql: session.sql(sql).collect()


def main():
    ask = {"duckdb": duckdb, "spark": spark}[sys.argv[1]](sys.argv[2])
    answers = [[[plain(value) for value in row] for row in ask(sql)] for sql in json.load(sys.stdin)]
    print(json.dumps(answers))


main()
