"""The kinds of jobs of Volcano: Job, CronJob, JobFlow, JobTemplate, and the Commands to them."""
