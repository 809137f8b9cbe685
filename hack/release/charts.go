// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

// maxChart bounds what is read of a chart from a registry, in bytes.
const maxChart = 16 << 20

// packed are the charts of a release.
type packed struct{ all []*chart }

// chart is a packed chart.
type chart struct {
	command, archive string
	tag              name.Tag
	// digest is known once the registry has it.
	digest name.Digest
}

// packedCharts returns the charts in the folder of the release. They name images of this release only.
func (p *plan) packedCharts(images []image) (*packed, error) {
	charts := &packed{}
	for _, command := range commands {
		// Chart versions, which are their tags, have no v.
		version := strings.TrimPrefix(p.version, "v")
		tag, err := name.NewTag(p.repository + "/charts/" + command + ":" + version)
		if err != nil {
			return nil, err
		}
		one := &chart{command: command, archive: filepath.Join(p.out, command+"-"+version+".tgz"), tag: tag}
		text, err := os.ReadFile(one.archive)
		if err != nil {
			return nil, err
		}
		values, err := valuesOf(text, command)
		if err != nil {
			return nil, fmt.Errorf("reading chart %s: %w", one.archive, err)
		}
		if err := checkPinned(values, images); err != nil {
			return nil, fmt.Errorf("chart %s: %w", one.archive, err)
		}
		charts.all = append(charts.all, one)
	}
	return charts, nil
}

// find reports whether the chart is in the registry. A different one of that version is an error.
func (c *chart) find(ctx context.Context) error {
	there, err := remote.Head(c.tag, registry(ctx)...)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking what the registry has as %s: %w", c.tag, err)
	}
	digest := c.tag.Digest(there.Digest.String())
	pulled, err := pullChart(ctx, digest)
	if err != nil {
		return err
	}
	built, err := os.ReadFile(c.archive)
	if err != nil {
		return err
	}
	if !bytes.Equal(pulled, built) {
		return fmt.Errorf("%s is in the registry already, with other content, as %s: a version is released once", c.tag, there.Digest)
	}
	c.digest = digest
	return nil
}

// pushChart pushes a chart that the registry does not have.
func (p *plan) pushChart(ctx context.Context, c *chart) error {
	if c.digest != (name.Digest{}) {
		return nil
	}
	push := []string{"push", c.archive, "oci://" + p.repository + "/charts"}
	if c.tag.Scheme() == "http" {
		push = append(push, "--plain-http")
	}
	said, err := p.runHelm(ctx, push...)
	if err != nil {
		return err
	}
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(said)
	if digest == "" {
		return fmt.Errorf("helm push named no digest: %s", said)
	}
	c.digest = c.tag.Digest(digest)
	return nil
}

func (p *plan) runHelm(ctx context.Context, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, p.helm, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w: %s", args[0], err, bytes.TrimSpace(said))
	}
	return string(said), nil
}

// pullChart returns the archive of a chart, and verifies it against its digest.
func pullChart(ctx context.Context, digest name.Digest) ([]byte, error) {
	image, err := remote.Image(digest, registry(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", digest, err)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", digest, err)
	}
	if len(layers) != 1 {
		return nil, fmt.Errorf("%s has %d layers, and a chart has one", digest, len(layers))
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", digest, err)
	}
	defer func() { _ = content.Close() }()
	archive, err := io.ReadAll(io.LimitReader(content, maxChart+1))
	if err != nil {
		return nil, fmt.Errorf("the content of %s does not verify: %w", digest, err)
	}
	if len(archive) > maxChart {
		return nil, fmt.Errorf("%s has more than %d bytes", digest, maxChart)
	}
	return archive, nil
}

// valuesOf returns the values in a chart's archive.
func valuesOf(archive []byte, command string) ([]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(io.LimitReader(unpacked, maxChart)); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for its values: %w", err)
		}
		if header.Name == command+"/values.yaml" {
			return io.ReadAll(files)
		}
	}
}

// checkPinned verifies that values name only images of this release, each by digest. The user sets
// an empty repository.
func checkPinned(values []byte, images []image) error {
	var parsed map[string]any
	if err := yaml.Unmarshal(values, &parsed); err != nil {
		return fmt.Errorf("reading its values: %w", err)
	}
	known := map[string]bool{}
	for _, one := range images {
		known[one.digest.Name()] = true
	}
	named := 0
	for key, value := range parsed {
		block, _ := value.(map[string]any)
		repository, _ := block["repository"].(string)
		if repository == "" {
			continue
		}
		digest, _ := block["digest"].(string)
		if digest == "" {
			return fmt.Errorf("its value %s names the image %s by no digest", key, repository)
		}
		if !known[repository+"@"+digest] {
			return fmt.Errorf("its value %s names the image %s@%s, which is none of this release", key, repository, digest)
		}
		named++
	}
	if named == 0 {
		return errors.New("its values name no image")
	}
	return nil
}
