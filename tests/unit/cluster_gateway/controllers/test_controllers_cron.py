"""CronJobs: Jobs by a schedule."""

from typing import Any


def cron(town: Any, template: Any, **spec: Any) -> None:
    work = {"spec": {"template": template(restartPolicy="Never")}}
    town.apply("CronJob", "c", {"schedule": "*/10 * * * *", "jobTemplate": work, **spec})


def jobs(town: Any) -> list[str]:
    return sorted(key.name for key in town.cluster.store.of_kind("Job.batch"))


def test_a_job_is_made_at_each_time_of_the_schedule(town: Any, template: Any) -> None:
    cron(town, template)
    assert jobs(town) == []
    town.advance(25 * 60)
    minutes = 1_767_225_600 // 60
    assert jobs(town) == [f"c-{minutes + 10}", f"c-{minutes + 20}"]
    status = town.status("CronJob", "c")
    assert status["lastScheduleTime"] == "2026-01-01T00:20:00Z" and len(status["active"]) == 2


def test_a_pause_counts_from_birth_and_from_the_last_run(town: Any, template: Any) -> None:
    cron(town, template, schedule="@every 90s")
    town.advance(89)
    assert jobs(town) == []
    town.advance(91)
    assert len(jobs(town)) == 2 and town.status("CronJob", "c")["lastScheduleTime"] == "2026-01-01T00:03:00Z"


def test_a_run_that_is_forbidden_begins_when_the_one_before_has_ended(town: Any, template: Any) -> None:
    cron(town, template, concurrencyPolicy="Forbid")
    town.advance(25 * 60)
    assert town.status("CronJob", "c")["lastScheduleTime"] == "2026-01-01T00:10:00Z"
    town.finish(town.names()[0])
    assert len(jobs(town)) == 2 and town.status("CronJob", "c")["lastScheduleTime"] == "2026-01-01T00:20:00Z"


def test_forbid_waits_and_replace_replaces(town: Any, template: Any) -> None:
    cron(town, template, concurrencyPolicy="Forbid")
    town.advance(25 * 60)
    [first] = jobs(town)
    cron(town, template, concurrencyPolicy="Replace")
    town.advance(10 * 60)
    assert len(jobs(town)) == 1 and first not in jobs(town)


def test_a_suspended_schedule_makes_nothing_and_only_the_newest_missed_time_is_made_up_for(
    town: Any, template: Any
) -> None:
    cron(town, template, suspend=True)
    town.advance(35 * 60)
    assert jobs(town) == []
    cron(town, template)
    assert len(jobs(town)) == 1


def test_a_time_missed_by_more_than_the_deadline_is_passed_over(town: Any, template: Any) -> None:
    cron(town, template, suspend=True)
    town.advance(35 * 60)
    cron(town, template, startingDeadlineSeconds=60)
    assert jobs(town) == []


def test_old_jobs_are_forgotten(town: Any, template: Any) -> None:
    """Three that succeeded are kept unless told otherwise."""
    cron(town, template)
    for _ in range(5):
        town.advance(10 * 60)
        town.finish(town.names()[0])
    assert len(jobs(town)) == 3
    assert town.status("CronJob", "c")["lastSuccessfulTime"] == "2026-01-01T00:50:00Z"


def test_a_schedule_has_its_time_zone(town: Any, template: Any) -> None:
    """Nine in Berlin is eight in UTC, in winter."""
    cron(town, template, schedule="0 9 * * *", timeZone="Europe/Berlin")
    town.advance(7 * 3600 + 3599)
    assert jobs(town) == []
    town.advance(1)
    assert len(jobs(town)) == 1


def test_a_schedule_that_cannot_be_read_makes_nothing(town: Any, template: Any) -> None:
    cron(town, template, schedule="every day")
    town.advance(86_400)
    assert jobs(town) == []


def test_words_for_schedules(town: Any, template: Any) -> None:
    cron(town, template, schedule="@hourly")
    town.advance(3600)
    assert len(jobs(town)) == 1
