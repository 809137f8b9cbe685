// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bundle puts everything that a release publishes into one folder: binaries, images, SBOMs,
// charts, CustomResourceDefinitions, the kubectl plugin, and metadata for Krew and Artifact Hub. The
// charts have the digests of the images. SHA256SUMS has the checksums of all other files.
//
// It needs no registry and no key: hack/release pushes and signs what this command has written. The
// same inputs give the same files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// commands are the programs with images and charts.
var commands = [...]string{"gateway", "agent"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// plan is what to put into the folder, from flags.
type plan struct {
	version, repository string
	// images is the output of `make images`, plugin that of `make plugin`, charts the folder of the
	// charts' sources.
	images, plugin, charts string
	helm, out              string
	// created is the time of everything in the release.
	created time.Time
}

func parse(args []string) (*plan, error) {
	p := &plan{}
	var created int64
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.StringVar(&p.version, "version", "", "Version of images and charts.")
	flags.StringVar(&p.repository, "repository", "", "Where the images will be, without the name of an image.")
	flags.StringVar(&p.images, "images", "", "Folder with the OCI layouts, SBOMs and binaries of the images.")
	flags.StringVar(&p.plugin, "plugin", "", "Folder with the kubectl plugin's archives and Krew manifest. If unset, the folder has no plugin.")
	flags.StringVar(&p.charts, "charts", "", "Folder with the charts and Artifact Hub's metadata of their repository.")
	flags.StringVar(&p.helm, "helm", "helm", "Path of helm, which packs charts.")
	flags.StringVar(&p.out, "out", "", "Folder to write to. Its earlier content is removed.")
	flags.Int64Var(&created, "created", 0, "Time of the commit, in seconds since 1970. The same value gives the same files.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	p.created = time.Unix(created, 0).UTC()
	for _, needed := range []struct{ flag, value string }{
		{"version", p.version}, {"repository", p.repository}, {"images", p.images}, {"charts", p.charts}, {"out", p.out},
	} {
		if needed.value == "" {
			return nil, fmt.Errorf("-%s is needed", needed.flag)
		}
	}
	return p, nil
}

func run(ctx context.Context, args []string) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(p.out), os.MkdirAll(p.out, 0o755)); err != nil {
		return err
	}
	digests := map[string]string{}
	for _, command := range commands {
		if digests[command], err = p.addImage(command); err != nil {
			return fmt.Errorf("adding the image of %s that make images has built: %w", command, err)
		}
	}
	for _, command := range commands {
		if err := p.addChart(ctx, command, digests); err != nil {
			return fmt.Errorf("packing the chart of %s: %w", command, err)
		}
		if err := p.addDefinitions(command); err != nil {
			return fmt.Errorf("writing the CustomResourceDefinitions of %s: %w", command, err)
		}
	}
	if err := p.addPlugin(); err != nil {
		return fmt.Errorf("adding the kubectl plugin: %w", err)
	}
	if err := p.add(filepath.Join(p.charts, repositoryMetadata), repositoryMetadata); err != nil {
		return err
	}
	return p.sum()
}

// number is the version without v, as charts and archives have it.
func (p *plan) number() string { return strings.TrimPrefix(p.version, "v") }

// path is a file of the release.
func (p *plan) path(name string) string { return filepath.Join(p.out, name) }
