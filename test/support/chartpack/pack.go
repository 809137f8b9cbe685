// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chartpack packs Helm charts for tests, as `helm package` does.
package chartpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// Folder packs the chart in a folder.
func Folder(path string) ([]byte, error) {
	files := map[string]string{}
	root := os.DirFS(path)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading chart %s: %w", path, err)
	}
	return Files(files)
}

// Files packs a chart of these files, by their names below the chart's folder. Without a
// Chart.yaml it gets one, of a chart "test" in version 0.1.0.
func Files(files map[string]string) ([]byte, error) {
	files = maps.Clone(files)
	if _, ok := files["Chart.yaml"]; !ok {
		files["Chart.yaml"] = "apiVersion: v2\nname: test\nversion: 0.1.0\n"
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: "chart/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := archive.Write([]byte(files[name])); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return packed.Bytes(), nil
}
