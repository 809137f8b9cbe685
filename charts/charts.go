// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts embeds the agent's Helm chart in the gateway, so that users of Helm and the
// gateway install the same agent.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:agent
var files embed.FS

// Agent returns the agent's chart as `helm package` writes it. The same program gives the same
// bytes.
func Agent() ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	err := fs.WalkDir(files, "agent", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err == nil {
		err = archive.Close()
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("packing the agent's chart: %w", err)
	}
	return packed.Bytes(), nil
}
