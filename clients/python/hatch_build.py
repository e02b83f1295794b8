"""Adds the adapters for agent frameworks as modules beside svc_gate.py. Their files are in ../../adapters, or here in an sdist."""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AdaptersHook(BuildHookInterface):
    def initialize(self, version, build_data):
        own = Path(self.root)
        adapters = own.parent.parent / "adapters"
        files = (adapters if adapters.is_dir() else own).glob("svc_gate_*.py")
        build_data["force_include"].update({str(file): file.name for file in files if file.name != "svc_gate_async.py"})
