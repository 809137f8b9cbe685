// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// commands are the programs with images and charts.
var commands = [...]string{"gateway", "agent"}

// repositoryMetadata is what Artifact Hub reads of a repository of charts.
const repositoryMetadata = "artifacthub-repo.yml"

// image is an image of all platforms, as built and as it will be in the registry.
type image struct {
	command   string
	index     v1.ImageIndex
	tag       name.Tag
	digest    name.Digest
	platforms []platform
}

// platform is the image of one platform.
type platform struct {
	name   string
	digest name.Digest
	// sbom is a document of SPDX.
	sbom json.RawMessage
}

// builtImages reads the output of `make images`.
func (p *plan) builtImages() ([]image, error) {
	var images []image
	for _, command := range commands {
		one, err := p.built(command)
		if err != nil {
			return nil, fmt.Errorf("reading the image of %s that make images has built: %w", command, err)
		}
		images = append(images, one)
	}
	return images, nil
}

func (p *plan) built(command string) (image, error) {
	tag, err := name.NewTag(p.repository + "/" + command + ":" + p.version)
	if err != nil {
		return image{}, err
	}
	index, err := onlyImage(filepath.Join(p.images, command))
	if err != nil {
		return image{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return image{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return image{}, err
	}
	one := image{command: command, index: index, tag: tag, digest: tag.Digest(digest.String())}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform == nil {
			return image{}, fmt.Errorf("%s is for no platform", descriptor.Digest)
		}
		sbom, err := os.ReadFile(filepath.Join(p.images, command+"-"+descriptor.Platform.Architecture+".spdx.json"))
		if err != nil {
			return image{}, err
		}
		one.platforms = append(one.platforms, platform{descriptor.Platform.String(), tag.Digest(descriptor.Digest.String()), sbom})
	}
	return one, nil
}

// onlyImage returns the only image of an OCI layout.
func onlyImage(folder string) (v1.ImageIndex, error) {
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("the layout has %d images, want one", len(manifest.Manifests))
	}
	return root.ImageIndex(manifest.Manifests[0].Digest)
}

// push pushes images and charts. It checks all tags first: an existing version must be identical.
func (p *plan) push(ctx context.Context, images []image, charts *packed) error {
	for _, one := range images {
		if err := notAnother(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range charts.all {
		if err := one.find(ctx); err != nil {
			return err
		}
	}
	for _, one := range images {
		if err := remote.WriteIndex(one.tag, one.index, registry(ctx)...); err != nil {
			return fmt.Errorf("pushing the image of %s: %w", one.command, err)
		}
	}
	for _, one := range charts.all {
		if err := p.pushChart(ctx, one); err != nil {
			return fmt.Errorf("pushing the chart of %s: %w", one.command, err)
		}
	}
	if err := p.pushMetadata(ctx, charts); err != nil {
		return fmt.Errorf("pushing %s: %w", repositoryMetadata, err)
	}
	return nil
}

// pushMetadata pushes what Artifact Hub reads of each chart's repository. Its tag belongs to no version.
func (p *plan) pushMetadata(ctx context.Context, charts *packed) error {
	text, err := os.ReadFile(filepath.Join(p.out, repositoryMetadata))
	if err != nil {
		return err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.artifacthub.config.v1+yaml")
	metadata, err := mutate.AppendLayers(base, static.NewLayer(text, "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"))
	if err != nil {
		return err
	}
	for _, one := range charts.all {
		if err := remote.Write(one.tag.Context().Tag("artifacthub.io"), metadata, registry(ctx)...); err != nil {
			return err
		}
	}
	return nil
}

// notAnother returns an error if this version of the image exists with another digest.
func notAnother(ctx context.Context, one image) error {
	there, err := remote.Head(one.tag, registry(ctx)...)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking what the registry has as %s: %w", one.tag, err)
	}
	if there.Digest.String() != one.digest.DigestStr() {
		return fmt.Errorf("%s is in the registry already, as %s, and what was built is %s: a version is released once", one.tag, there.Digest, one.digest.DigestStr())
	}
	return nil
}

// missing reports whether the registry's error means that an object does not exist.
func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// registry has the options for registry requests.
func registry(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}
