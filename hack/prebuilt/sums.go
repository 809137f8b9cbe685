// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// file is a row of sums.txt: a file with a program for a platform.
type file struct {
	set, program, version, platform string
	// algorithm is sha256 or sha512.
	algorithm, sum string
	url            string
	// member is the program's path in an archive. Empty means that the file is the program.
	member string
}

func (f file) newHash() hash.Hash {
	if f.algorithm == "sha512" {
		return sha512.New()
	}
	return sha256.New()
}

// parse reads rows of set, program, version, platform, algorithm:sum, URL, and the member of an archive.
func parse(rows string) ([]file, error) {
	var files []file
	for row := range strings.Lines(rows) {
		fields := strings.Fields(row)
		if len(fields) == 0 || strings.HasPrefix(row, "#") {
			continue
		}
		if len(fields) < 6 || len(fields) > 7 {
			return nil, fmt.Errorf("reading sums.txt: a row has 6 or 7 fields: %q", row)
		}
		f := file{set: fields[0], program: fields[1], version: fields[2], platform: fields[3], url: fields[5]}
		f.algorithm, f.sum, _ = strings.Cut(fields[4], ":")
		if len(fields) == 7 {
			f.member = fields[6]
		}
		if raw, err := hex.DecodeString(f.sum); err != nil || f.algorithm != fmt.Sprintf("sha%d", len(raw)*8) || len(raw) != f.newHash().Size() {
			return nil, fmt.Errorf("reading sums.txt: %q is not a sum of SHA-256 or SHA-512", fields[4])
		}
		files = append(files, f)
	}
	return files, nil
}

func choose(files []file, set, platform string) []file {
	var chosen []file
	for _, f := range files {
		if f.set == set && f.platform == platform {
			chosen = append(chosen, f)
		}
	}
	return chosen
}
