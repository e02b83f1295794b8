/**
 * Goal: the gate works in the released agent hosts, and docs/hosts/results.md says exactly in which cases. Method: the
 * conformance kit runs each host of the lock file against a scripted model and a real gate. Positive control: the broken
 * adapters of mutants.test.ts. Here: opencode, whose start takes seconds.
 */
import { opencode } from "../../../adapters/conformance/drivers/opencode.ts";
import { testHosts } from "../../support/host-suite.ts";

testHosts([opencode]);
