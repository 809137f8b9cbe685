// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const (
	// repositoryMetadata is what Artifact Hub reads of the charts' repository.
	repositoryMetadata = "artifacthub-repo.yml"
	// krewManifest is the Krew manifest of the kubectl plugin.
	krewManifest = "fleetgate.yaml"
	// checksums are in the format of sha256sum.
	checksums = "SHA256SUMS"
)

// addImage adds the OCI layout of a command's image as an archive, with the SBOM and the binary of
// each platform, and returns the digest of the image.
func (p *plan) addImage(command string) (digest string, err error) {
	layout := filepath.Join(p.images, command)
	var index struct {
		Manifests []struct{ Digest string }
	}
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return "", err
	}
	if len(index.Manifests) != 1 {
		return "", fmt.Errorf("its layout has %d images, want one", len(index.Manifests))
	}
	if err := p.archive(layout, command+".oci.tar"); err != nil {
		return "", err
	}
	boms, err := filepath.Glob(filepath.Join(p.images, command+"-*.spdx.json"))
	if err != nil {
		return "", err
	}
	binaries, err := filepath.Glob(filepath.Join(p.images, "bin", "*", "*", command))
	if err != nil {
		return "", err
	}
	for _, file := range boms {
		if err := p.add(file, filepath.Base(file)); err != nil {
			return "", err
		}
	}
	for _, file := range binaries {
		platform := filepath.Dir(file)
		if err := p.add(file, fmt.Sprintf("%s-%s-%s", command, filepath.Base(filepath.Dir(platform)), filepath.Base(platform))); err != nil {
			return "", err
		}
	}
	return index.Manifests[0].Digest, nil
}

// archive writes the files of a folder into an archive.
func (p *plan) archive(folder, name string) error {
	out, err := os.Create(p.path(name))
	if err != nil {
		return err
	}
	writer, root := tar.NewWriter(out), os.DirFS(folder)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text)), ModTime: p.created, Format: tar.FormatUSTAR}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err = writer.Write(text)
		return err
	})
	return errors.Join(err, writer.Close(), out.Close())
}

// addPlugin adds the archives that Krew's manifest names, and the manifest, as `make plugin` writes
// them. An archive that differs from the manifest is an error.
func (p *plan) addPlugin() error {
	if p.plugin == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(p.plugin, krewManifest))
	if err != nil {
		return err
	}
	var manifest struct {
		Spec struct {
			Platforms []struct{ URI, SHA256 string }
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		return fmt.Errorf("reading %s: %w", krewManifest, err)
	}
	for _, platform := range manifest.Spec.Platforms {
		name := path.Base(platform.URI)
		sum, err := sumOf(filepath.Join(p.plugin, name))
		if err != nil {
			return err
		}
		if sum != platform.SHA256 {
			return fmt.Errorf("%s is not the archive that %s names: build both again with make plugin", name, krewManifest)
		}
		if err := p.add(filepath.Join(p.plugin, name), name); err != nil {
			return err
		}
	}
	return p.add(filepath.Join(p.plugin, krewManifest), krewManifest)
}

// add copies a file.
func (p *plan) add(file, name string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	found, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.WriteFile(p.path(name), text, found.Mode())
}

// sum writes the checksums of all files.
func (p *plan) sum() error {
	files, err := os.ReadDir(p.out)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, file := range files {
		sum, err := sumOf(p.path(file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, file.Name())
	}
	fmt.Printf("Wrote %d files and %s to %s\n", len(files), checksums, p.out)
	return os.WriteFile(p.path(checksums), text.Bytes(), 0o644)
}

func sumOf(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
