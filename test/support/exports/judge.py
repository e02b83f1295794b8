"""What a verifier in Python says of each target: `judge.py VERIFIER < JOBS`, both JSON; nothing but the report is printed."""

import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("svc_verify", sys.argv[1])
svc_verify = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(svc_verify)

reports = []
for job in json.load(sys.stdin):
    try:
        reports.append(svc_verify.verify(job["target"], job["keys"], job["witnesses"], job.get("chain", False)))
    except Exception as error:  # of a verifier that was broken on purpose: whatever it throws is an answer
        reports.append({"thrown": f"{type(error).__name__}: {error}"})
print(json.dumps(reports))
