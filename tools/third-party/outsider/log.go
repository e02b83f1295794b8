package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/formats/witness"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// place is where a log's files are: a folder, or an address whose requests carry a key.
type place struct{ base, token string }

func (p place) read(path string) ([]byte, error) {
	if !strings.HasPrefix(p.base, "http://") {
		return os.ReadFile(filepath.Join(p.base, filepath.FromSlash(path)))
	}
	request, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(p.base, "/")+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}

// Tiles of sumdb lie under tile/8/LEVEL and tile/8/data, those of C2SP under tile/LEVEL and tile/entries.
func c2spPath(tile tlog.Tile) string {
	path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
	return strings.Replace(path, "tile/data/", "tile/entries/", 1)
}

func (p place) Height() int { return 8 }

func (p place) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var read [][]byte
	for _, tile := range tiles {
		bytes, err := p.read(c2spPath(tile))
		if err != nil {
			return nil, err
		}
		read = append(read, bytes)
	}
	return read, nil
}

func (p place) SaveTiles([]tlog.Tile, [][]byte) {}

type logFound struct {
	Origin    string  `json:"origin"`
	Size      uint64  `json:"size"`
	Root      string  `json:"root"`
	Included  []int64 `json:"included"`
	Canonical int     `json:"canonical"`
}

// lookAtLog opens the checkpoint and shows for each index that its entry is in the signed tree: the hashes come out of
// tiles that are themselves checked against the root.
func lookAtLog(base, vkey string, indices []string) (*logFound, error) {
	from := place{base, os.Getenv("OUTSIDER_TOKEN")}
	written, err := from.read("checkpoint")
	if err != nil {
		return nil, err
	}
	checkpoint, err := openCheckpoint(written, vkey)
	if err != nil {
		return nil, err
	}
	found := &logFound{checkpoint.Origin, checkpoint.Size, base64.StdEncoding.EncodeToString(checkpoint.Hash), nil, 0}
	tree := tlog.Tree{N: int64(checkpoint.Size), Hash: tlog.Hash(checkpoint.Hash)}
	reader := tlog.TileHashReader(tree, from)
	for _, text := range indices {
		index, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		entry, err := from.entry(index, tree.N)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", index, err)
		}
		path, err := tlog.ProveRecord(tree.N, index, reader)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", index, err)
		}
		if err := tlog.CheckRecord(path, tree.N, tree.Hash, index, tlog.RecordHash(entry)); err != nil {
			return nil, fmt.Errorf("entry %d is not the one that was signed: %w", index, err)
		}
		found.Included = append(found.Included, index)
		if canonical, err := jsoncanonicalizer.Transform(entry); err == nil && bytes.Equal(canonical, entry) {
			found.Canonical++
		}
	}
	return found, nil
}

// openCheckpoint wants the log's own signature, with the key's name as the origin.
func openCheckpoint(written []byte, vkey string) (*log.Checkpoint, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, err
	}
	checkpoint, rest, _, err := log.ParseCheckpoint(written, verifier.Name(), verifier)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("the checkpoint has %d bytes more", len(rest))
	}
	return checkpoint, nil
}

// entry reads one entry out of its bundle, each behind its length in two bytes.
func (p place) entry(index, size int64) ([]byte, error) {
	if index < 0 || index >= size {
		return nil, fmt.Errorf("there are %d", size)
	}
	width := min(256, size-index/256*256)
	bundle, err := p.read(c2spPath(tlog.Tile{H: 8, L: -1, N: index / 256, W: int(width)}))
	if err != nil {
		return nil, err
	}
	for at := int64(0); ; at++ {
		if len(bundle) < 2 || len(bundle) < 2+int(binary.BigEndian.Uint16(bundle)) {
			return nil, fmt.Errorf("its bundle ends before it")
		}
		end := 2 + int(binary.BigEndian.Uint16(bundle))
		if at == index%256 {
			return bundle[2:end], nil
		}
		bundle = bundle[end:]
	}
}

type proofFound struct {
	Origin string `json:"origin"`
	Size   uint64 `json:"size"`
	Index  uint64 `json:"index"`
	Leaf   string `json:"leaf"`
	Hash   string `json:"hash"`
}

// lookAtProof verifies a proof's file alone; the leaf is its extra.
func lookAtProof(file, vkey string) (*proofFound, error) {
	written, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var read proof.TLogProof
	if err := read.Unmarshal(written); err != nil {
		return nil, err
	}
	if !bytes.Equal(read.Marshal(), written) {
		return nil, fmt.Errorf("written again it is another file")
	}
	checkpoint, err := openCheckpoint(read.Checkpoint, vkey)
	if err != nil {
		return nil, err
	}
	var path [][]byte
	for _, hash := range read.Hashes {
		path = append(path, hash[:])
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(read.ExtraData)
	err = merkle.VerifyInclusion(rfc6962.DefaultHasher, read.Index, checkpoint.Size, leaf, path, checkpoint.Hash)
	if err != nil {
		return nil, err
	}
	return &proofFound{checkpoint.Origin, checkpoint.Size, read.Index, string(read.ExtraData), fmt.Sprintf("%x", leaf)}, nil
}

type policyFound struct {
	Witnesses int  `json:"witnesses"`
	Satisfied bool `json:"satisfied"`
}

func lookAtPolicy(file, checkpoint string) (*policyFound, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	policy, err := witness.ParsePolicy(text)
	if err != nil {
		return nil, err
	}
	written, err := os.ReadFile(checkpoint)
	if err != nil {
		return nil, err
	}
	return &policyFound{len(policy.Endpoints()), policy.Satisfied(written)}, nil
}
