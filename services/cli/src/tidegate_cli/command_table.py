"""Every command, in the order in which ``tidegate --help`` lists them."""

from tidegate_cli.lazy_group import Entry

_TABLE = """
Run
  up tidegate_cli.supervisor.commands Start Tidegate on this machine.
  down tidegate_cli.supervisor.commands Stop what `up` started.
  install tidegate_cli.commands.install Install what runs in place of images on this machine.
  status tidegate_cli.commands.status Show the services and how far each has come.
Write
  apply tidegate_cli.commands.apply Create or update objects from files.
  create tidegate_cli.commands.apply Create objects from files; refuse what exists.
  patch tidegate_cli.commands.patch Change fields of an object.
  delete tidegate_cli.commands.delete Delete objects, and wait until they are gone.
  recommend tidegate_cli.commands.recommend Write into a workload what a Recommendation says.
  scale tidegate_cli.commands.steering Set how many replicas a job's task or a workload has.
  suspend tidegate_cli.commands.steering Take a job's pods away and keep the job.
  resume tidegate_cli.commands.steering Let a suspended job, or scheduling, go on.
  pause tidegate_cli.commands.steering Place nothing and evict nobody for a while.
Read
  get tidegate_cli.commands.get List objects, or show some by name.
  describe tidegate_cli.commands.describe Tell all about an object and what happened to it.
  explain tidegate_cli.commands.explain Say why a job or pod waits, or where it went.
  logs tidegate_cli.commands.logs Print what the containers of a pod or job wrote.
  events tidegate_cli.commands.events List what was decided and done of late.
  queue tidegate_cli.commands.queue Show how queues stand, and who waits in them.
  top tidegate_cli.commands.top Show what nodes and pods ask for, have and use.
  wait tidegate_cli.commands.wait Wait until objects are in a state.
Try
  whatif tidegate_cli.commands.whatif Say what would become of manifests if they were applied.
  moves tidegate_cli.commands.moves Show which pods the descheduler would move, and why.
  snapshot tidegate_cli.commands.snapshot Write all that decisions depend on into a file.
  replay tidegate_cli.commands.snapshot Make a decision again and compare it byte by byte.
  sim tidegate_cli.commands.sim Run scenario files in virtual time.
Help
  api-resources tidegate_cli.commands.api_resources List the kinds that Tidegate serves.
  crds tidegate_cli.commands.crds Print the definitions that a Kubernetes cluster needs.
  check-cluster tidegate_cli.commands.check_cluster List what would differ if Tidegate took a Kubernetes cluster over.
  whoami tidegate_cli.commands.status Show who you are and where you may write.
  version tidegate_cli.commands.status Show the versions of client and server.
  completion tidegate_cli.commands.completion Print the completion script of a shell.
"""


def _read(table: str) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    section = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            name, module, summary = line.split(maxsplit=2)
            entries.append(Entry(name, module, summary, section))
        else:
            section = line
    return tuple(entries)


COMMANDS = _read(_TABLE)
