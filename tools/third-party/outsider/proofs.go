package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// claim is that a leaf is in a tree, or (From and FromRoot instead of Index and Leaf) that a tree is another's start.
type claim struct {
	Kind     string   `json:"kind"`
	Index    uint64   `json:"index"`
	Leaf     string   `json:"leaf,omitempty"`
	From     uint64   `json:"from"`
	FromRoot string   `json:"fromRoot,omitempty"`
	Size     uint64   `json:"size"`
	Root     string   `json:"root"`
	Proof    []string `json:"proof"`
}

// writeProofs writes what sumdb proves of every leaf and every start of the trees of 1 to the given number of leaves.
func writeProofs(text string) error {
	most, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	var stored hashes
	var leaves, roots []tlog.Hash
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for size := int64(1); size <= most; size++ {
		leaf := fmt.Appendf(nil, "leaf %d", size-1)
		added, err := tlog.StoredHashes(size-1, leaf, stored)
		if err != nil {
			return err
		}
		stored = append(stored, added...)
		root, err := tlog.TreeHash(size, stored)
		if err != nil {
			return err
		}
		leaves, roots = append(leaves, tlog.RecordHash(leaf)), append(roots, root)
		for at := int64(0); at < size; at++ {
			path, err := tlog.ProveRecord(size, at, stored)
			if err != nil {
				return err
			}
			encoder.Encode(claim{"inclusion", uint64(at), hexOf(leaves[at]), 0, "", uint64(size), hexOf(root), texts(path)})
			between, err := tlog.ProveTree(size, at+1, stored)
			if err != nil {
				return err
			}
			encoder.Encode(claim{"consistency", 0, "", uint64(at + 1), hexOf(roots[at]), uint64(size), hexOf(root), texts(between)})
		}
	}
	return out.Flush()
}

type hashes []tlog.Hash

func (h hashes) ReadHashes(indices []int64) ([]tlog.Hash, error) {
	var read []tlog.Hash
	for _, index := range indices {
		read = append(read, h[index])
	}
	return read, nil
}

func hexOf(hash tlog.Hash) string { return hex.EncodeToString(hash[:]) }

func texts(path []tlog.Hash) []string {
	written := []string{}
	for _, hash := range path {
		written = append(written, hexOf(hash))
	}
	return written
}

// judgeAll reads claims and says of each, on a line, what sumdb and transparency-dev/merkle hold of it.
func judgeAll() error {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	for {
		var each claim
		if err := in.Decode(&each); err == io.EOF {
			return out.Flush()
		} else if err != nil {
			return err
		}
		fmt.Fprintln(out, heldBySumdb(each), heldByMerkle(each))
	}
}

func heldBySumdb(each claim) bool {
	var path []tlog.Hash
	for _, text := range each.Proof {
		path = append(path, hashOf(text))
	}
	size, root := int64(each.Size), hashOf(each.Root)
	if each.Kind == "inclusion" {
		return tlog.CheckRecord(path, size, root, int64(each.Index), hashOf(each.Leaf)) == nil
	}
	return tlog.CheckTree(path, size, root, int64(each.From), hashOf(each.FromRoot)) == nil
}

func heldByMerkle(each claim) bool {
	var path [][]byte
	for _, text := range each.Proof {
		path = append(path, bytesOf(text))
	}
	if each.Kind == "inclusion" {
		return merkle.VerifyInclusion(rfc6962.DefaultHasher, each.Index, each.Size, bytesOf(each.Leaf), path, bytesOf(each.Root)) == nil
	}
	return merkle.VerifyConsistency(rfc6962.DefaultHasher, each.From, each.Size, path, bytesOf(each.FromRoot), bytesOf(each.Root)) == nil
}

func bytesOf(text string) []byte {
	read, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return read
}

func hashOf(text string) (hash tlog.Hash) {
	copy(hash[:], bytesOf(text))
	return hash
}
