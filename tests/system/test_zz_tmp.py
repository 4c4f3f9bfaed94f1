import subprocess, threading, time
from tidegate_system_gangs import *
def test_it(system):
    for i in range(12):
        system.apply(ring("lasting"))
        system.finally_right(lambda: [x for x in is_whole(system, ["lasting"])])
        pid=system.pid("node_agent")
        def spy():
            time.sleep(6)
            print(subprocess.run(["/tmp/ft/pv/bin/py-spy","dump","--pid",str(pid)],capture_output=True,text=True))
            import os; os.system(f"ls /proc/{pid}/task; cat {system.folder}/node/pods/*/record.json; ps -ef | grep 'sleep 100000' | head")
        th=threading.Thread(target=spy,daemon=True)
        t=time.time(); 
        stopped=threading.Event()
        def maybe():
            if not stopped.wait(6): spy()
        threading.Thread(target=maybe,daemon=True).start()
        system.stop(); stopped.set(); print(i, time.time()-t, flush=True)
        system.start(); system.delete("job","lasting"); system.finally_right(lambda: is_empty(system))
