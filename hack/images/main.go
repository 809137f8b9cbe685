// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

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

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// options are the command-line flags.
type options struct {
	name, version, licence, out, repository, push string
	created                                       int64
	binaries                                      binaries
}

// binaries are paths by platform, in the order given.
type binaries []struct{ platform, path string }

func (b *binaries) String() string { return fmt.Sprint(*b) }

// Set parses os/architecture=path.
func (b *binaries) Set(text string) error {
	platform, path, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want os/architecture=path")
	}
	*b = append(*b, struct{ platform, path string }{platform, path})
	return nil
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", "", "Name of the command, and of the image.")
	flags.StringVar(&o.version, "version", "", "Version, which becomes the tag.")
	flags.StringVar(&o.licence, "licence", "LICENSE", "File with the licence.")
	flags.StringVar(&o.out, "out", "", "Folder to write to.")
	flags.StringVar(&o.repository, "repository", "", "Repository that the image will have, without tag.")
	flags.StringVar(&o.push, "push", "", "Push it to this repository too, with the credentials of docker login.")
	flags.Int64Var(&o.created, "created", 0, "When it was made, in seconds since 1970. The same value gives the same image.")
	flags.Var(&o.binaries, "binary", "os/architecture=path of a static binary; once for each platform.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if o.name == "" || o.version == "" || o.out == "" || o.repository == "" || len(o.binaries) == 0 {
		return nil, errors.New("-name, -version, -out, -repository and at least one -binary are needed")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	built, err := o.build()
	if err != nil {
		return err
	}
	if err := o.write(built); err != nil {
		return err
	}
	digest, err := built.index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s:%s@%s\n", o.repository, o.version, digest)
	if o.push == "" {
		return nil
	}
	reference, err := name.NewTag(o.push + ":" + o.version)
	if err != nil {
		return fmt.Errorf("reading -push: %w", err)
	}
	if err := remote.WriteIndex(reference, built.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	return nil
}

func (o *options) build() (*images, error) {
	licence, err := os.ReadFile(o.licence)
	if err != nil {
		return nil, fmt.Errorf("reading the licence: %w", err)
	}
	built := newImages()
	for _, binary := range o.binaries {
		platform, err := v1.ParsePlatform(binary.platform)
		if err != nil {
			return nil, fmt.Errorf("reading -binary %s: %w", binary.platform, err)
		}
		one, err := assemble(content{
			name: o.name, version: o.version, licence: licence, path: binary.path, platform: *platform, created: time.Unix(o.created, 0).UTC(),
		})
		if err != nil {
			return nil, fmt.Errorf("making the image of %s for %s: %w", o.name, binary.platform, err)
		}
		built.add(one, *platform)
	}
	return built, nil
}

// write replaces the output of an earlier run.
func (o *options) write(built *images) error {
	folder := filepath.Join(o.out, o.name)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	// One image with the version as its name: skopeo refuses a layout with several, and oras needs the name.
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the OCI layout: %w", err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version})
	if err := path.AppendIndex(built.index, named); err != nil {
		return fmt.Errorf("writing the OCI layout: %w", err)
	}
	tag, err := name.NewTag(o.repository + ":" + o.version)
	if err != nil {
		return fmt.Errorf("reading -repository: %w", err)
	}
	for i, one := range built.all {
		architecture := built.platforms[i].Architecture
		if err := tarball.WriteToFile(filepath.Join(o.out, o.name+"-"+architecture+".tar"), tag, one.image); err != nil {
			return fmt.Errorf("writing the tarball: %w", err)
		}
		if err := os.WriteFile(filepath.Join(o.out, o.name+"-"+architecture+".spdx.json"), one.sbom, 0o644); err != nil {
			return fmt.Errorf("writing the SBOM: %w", err)
		}
	}
	return nil
}
