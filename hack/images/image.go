// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user does not exist on nodes; distroless images use the same. The charts name it too.
const user = "65532:65532"

// content is the content of one image.
type content struct {
	name, version string
	// path is the path of the binary.
	path     string
	licence  []byte
	platform v1.Platform
	// created is the time of everything in the image.
	created time.Time
}

// image is one image, with its SBOM.
type image struct {
	image v1.Image
	sbom  []byte
}

// images is one command for several platforms.
type images struct {
	index     v1.ImageIndex
	all       []*image
	platforms []v1.Platform
}

func newImages() *images {
	return &images{index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
}

// untyped has no artifact type in an index. Skopeo 1.9 drops that of images, and so changes the digest
// of the index, by which charts name it.
type untyped struct{ v1.Image }

// ArtifactType replaces that of the configuration.
func (untyped) ArtifactType() (string, error) { return "", nil }

func (i *images) add(one *image, platform v1.Platform) {
	i.index = mutate.AppendManifests(i.index, mutate.IndexAddendum{Add: untyped{one.image}, Descriptor: v1.Descriptor{Platform: &platform}})
	i.all, i.platforms = append(i.all, one), append(i.platforms, platform)
}

// file is a file of the layer.
type file struct {
	path    string
	mode    int64
	content []byte
}

// assemble builds the image of a binary.
func assemble(c content) (*image, error) {
	binary, err := os.ReadFile(c.path)
	if err != nil {
		return nil, err
	}
	if err := checkStatic(binary); err != nil {
		return nil, err
	}
	sbom, err := describe(c, binary)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(c.created, []file{
		{"etc/passwd", 0o444, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o444, certificates()},
		{c.name, 0o555, binary},
		{"usr/share/doc/fleetgate/LICENSE", 0o444, c.licence},
		{"usr/share/doc/fleetgate/" + c.name + ".spdx.json", 0o444, sbom},
	})
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: c.created}, CreatedBy: "hack/images", Comment: c.name + " " + c.version},
	})
	if err != nil {
		return nil, err
	}
	built, err = configure(built, c)
	return &image{image: built, sbom: sbom}, err
}

// checkStatic rejects binaries that need a linker or libraries.
func checkStatic(binary []byte) error {
	parsed, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("reading the binary: %w", err)
	}
	defer func() { _ = parsed.Close() }()
	for _, part := range parsed.Progs {
		if part.Type == elf.PT_INTERP {
			return errors.New("the binary is linked dynamically and would not start on an empty base: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

func configure(built v1.Image, c content) (v1.Image, error) {
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = c.platform.OS, c.platform.Architecture, c.platform.Variant
	config.Created = v1.Time{Time: c.created}
	config.Config.User = user
	config.Config.WorkingDir = "/"
	config.Config.Entrypoint = []string{"/" + c.name}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "fleetgate " + c.name,
		"org.opencontainers.image.version":  c.version,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(built, config)
}

// layerOf writes sorted files with the folders above them.
func layerOf(created time.Time, files []file) (v1.Layer, error) {
	var archive bytes.Buffer
	writer, folders := tar.NewWriter(&archive), map[string]bool{}
	for _, f := range files {
		for i, letter := range f.path {
			if folder := f.path[:i]; letter == '/' && !folders[folder] {
				folders[folder] = true
				header := &tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: created, Format: tar.FormatPAX}
				if err := writer.WriteHeader(header); err != nil {
					return nil, err
				}
			}
		}
		header := &tar.Header{Name: f.path, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.content)), ModTime: created, Format: tar.FormatPAX}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// certificates are the public root certificates as PEM, for hubs and proxies with a publicly
// trusted certificate. Roots with constraints are left out, because a PEM file cannot express them.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writes to a bytes.Buffer do not fail.
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}
