// Command outsider looks at a ledger with the libraries of others, and with none of ours: golang.org/x/mod/sumdb
// (signed notes, trees, tiles), transparency-dev/formats (checkpoints, proof files, policies of witnesses),
// transparency-dev/merkle (proofs) and the Go half of cyberphone/json-canonicalization (RFC 8785).
//
// It prints what it found as JSON, or exits with 1 and a sentence.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const usage = `usage:
  outsider log BASE VKEY [INDEX...]    a log's checkpoint, tiles and entries; BASE is a URL (its key in OUTSIDER_TOKEN) or a folder
  outsider proof FILE VKEY             one row's proof file
  outsider policy FILE CHECKPOINT      whether a policy of witnesses is met by a checkpoint
  outsider proofs SIZE                 every proof of the trees of up to SIZE leaves, the leaf I being "leaf I"
  outsider judge                       proofs, one JSON object a line, each judged by two libraries`

func main() {
	found, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if found != nil {
		json.NewEncoder(os.Stdout).Encode(found)
	}
}

func run(args []string) (any, error) {
	switch {
	case len(args) >= 3 && args[0] == "log":
		return lookAtLog(args[1], args[2], args[3:])
	case len(args) == 3 && args[0] == "proof":
		return lookAtProof(args[1], args[2])
	case len(args) == 3 && args[0] == "policy":
		return lookAtPolicy(args[1], args[2])
	case len(args) == 2 && args[0] == "proofs":
		return nil, writeProofs(args[1])
	case len(args) == 1 && args[0] == "judge":
		return nil, judgeAll()
	}
	return nil, fmt.Errorf("%s", usage)
}
