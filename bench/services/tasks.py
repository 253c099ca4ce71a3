"""Celery: tasks that compute, with folders as the broker. `tasks.py COUNT` queues COUNT tasks."""
import os
import sys

import celery

FOLDER = os.environ["QUEUE"]
app = celery.Celery("tasks", broker="filesystem://", set_as_current=True)
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True, worker_prefetch_multiplier=1,
                broker_transport_options={"polling_interval": 0.05, "data_folder_in": FOLDER, "data_folder_out": FOLDER, "control_folder": FOLDER + "-control"})


@app.task
def multiply(count):
    return sum(i * i for i in range(count))


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        app.send_task("tasks.multiply", args=[300000])
