// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command krew packs the kubectl plugin for its platforms, each with the license, and writes
// the manifest by which Krew installs it. The same binaries give the same archives.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

func main() {
	o := options{}
	flag.StringVar(&o.version, "version", "", "Version without v in front.")
	flag.StringVar(&o.binaries, "binaries", "", "Folder with OS-ARCH/kubectl-fleetgate for each platform.")
	flag.StringVar(&o.license, "license", "LICENSE", "The license's file.")
	flag.StringVar(&o.url, "url", "", "Where the archives will be, without their names.")
	flag.StringVar(&o.out, "out", "", "Folder to write to.")
	flag.Parse()
	if err := o.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

type options struct{ version, binaries, license, url, out string }

// manifest is Krew's plugin manifest; docs/ has its format.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// run packs platforms such as linux/amd64.
func (o options) run(platforms []string) error {
	if o.version == "" || o.url == "" || o.out == "" || len(platforms) == 0 {
		return errors.New("say -version, -url, -out and the platforms")
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	m := manifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "fleetgate"},
		Spec: spec{
			Version: "v" + o.version, Homepage: "https://github.com/fleetgate/fleetgate", ShortDescription: "Manage a fleet of clusters from its hub",
			Description: "Manage a fleet of clusters from its hub: list members and their status,\nexplain why a placement is not applied and how to fix it, join, drain and\nremove clusters, manage staged updates, and run kubectl commands on one\nmember or across many.\n",
		},
	}
	for _, name := range platforms {
		p, err := o.pack(name)
		if err != nil {
			return fmt.Errorf("packing for %s: %w", name, err)
		}
		m.Spec.Platforms = append(m.Spec.Platforms, p)
	}
	text, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "fleetgate.yaml"), text, 0o644)
}

func (o options) pack(name string) (platform, error) {
	var p platform
	system, arch, ok := strings.Cut(name, "/")
	if !ok {
		return p, errors.New("a platform is OS/ARCH")
	}
	p.Bin = "kubectl-fleetgate"
	if system == "windows" {
		p.Bin += ".exe"
	}
	p.Selector.MatchLabels = map[string]string{"os": system, "arch": arch}
	binary, err := os.ReadFile(filepath.Join(o.binaries, system+"-"+arch, p.Bin))
	if err != nil {
		return p, err
	}
	license, err := os.ReadFile(o.license)
	if err != nil {
		return p, err
	}
	contents := []content{{p.Bin, 0o755, binary}, {"LICENSE", 0o644, license}}
	var packed bytes.Buffer
	archive, write := fmt.Sprintf("kubectl-fleetgate-%s-%s-%s.tar.gz", o.version, system, arch), tarred
	if system == "windows" {
		archive, write = strings.TrimSuffix(archive, ".tar.gz")+".zip", zipped
	}
	if err := write(&packed, contents); err != nil {
		return p, err
	}
	sum := sha256.Sum256(packed.Bytes())
	p.URI, p.SHA256 = strings.TrimSuffix(o.url, "/")+"/"+archive, hex.EncodeToString(sum[:])
	return p, os.WriteFile(filepath.Join(o.out, archive), packed.Bytes(), 0o644)
}

// content is a file in an archive.
type content struct {
	name string
	mode fs.FileMode
	text []byte
}

func tarred(out io.Writer, contents []content) error {
	zip := gzip.NewWriter(out)
	archive := tar.NewWriter(zip)
	for _, c := range contents {
		if err := archive.WriteHeader(&tar.Header{Name: c.name, Typeflag: tar.TypeReg, Mode: int64(c.mode), Size: int64(len(c.text)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(c.text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

func zipped(out io.Writer, contents []content) error {
	archive := zip.NewWriter(out)
	for _, c := range contents {
		header := &zip.FileHeader{Name: c.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(c.mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(c.text); err != nil {
			return err
		}
	}
	return archive.Close()
}
