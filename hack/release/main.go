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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// plan is what to release and how, from flags.
type plan struct {
	// repository is the prefix of images and charts, without their names.
	repository, version string
	// tree is the checkout, images the output of `make images`, out the folder that hack/bundle has written.
	tree, images, out string
	helm              string
	// url is the public URL of the source.
	url string
	// created is the time of everything in the release.
	created time.Time
	// trial accepts a tree that is no commit with the version's tag.
	trial bool
	// check stops before anything is pushed.
	check bool
	keys  keys
}

func parse(args []string) (*plan, error) {
	p := &plan{}
	var created int64
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&p.repository, "push", "", "Registry and path to push to, without the name of an image, with the credentials of docker login.")
	flags.StringVar(&p.version, "version", "", "Version of images and charts, and the required tag of the commit.")
	flags.StringVar(&p.tree, "tree", ".", "Folder of the checkout.")
	flags.StringVar(&p.images, "images", "", "Folder with the OCI layouts and SBOMs of the images.")
	flags.StringVar(&p.helm, "helm", "helm", "Path of helm, which pushes charts.")
	flags.StringVar(&p.out, "out", "", "Folder of the release, as hack/bundle has written it. Signatures and the list of digests are written to it.")
	flags.StringVar(&p.url, "source", "", "Public URL of the source repository.")
	flags.Int64Var(&created, "created", 0, "Time of the commit, in seconds since 1970. The same value gives the same charts.")
	flags.BoolVar(&p.trial, "trial", false, "Also release a tree with changes, or a commit without the version's tag. The statements say so.")
	flags.BoolVar(&p.check, "check", false, "Only check that this tree can be released and that a signer is available.")
	flags.StringVar(&p.keys.file, "key", "", "File with a cosign private key, whose password is in COSIGN_PASSWORD. If unset, sign keyless with the token in the environment.")
	flags.BoolVar(&p.keys.logged, "transparency-log", false, "Also record signatures made with -key in the log. Keyless signatures always are.")
	flags.StringVar(&p.keys.identity, "identity", "", "Required identity of the certificate for keyless signing, as cosign's --certificate-identity.")
	flags.StringVar(&p.keys.issuer, "issuer", "", "Required issuer of the token for keyless signing, as cosign's --certificate-oidc-issuer.")
	flags.StringVar(&p.keys.services, "signing-config", "", "File that names Fulcio, Rekor and timestamp authority, as cosign's. If unset, Sigstore's public ones.")
	flags.StringVar(&p.keys.roots, "trusted-root", "", "File with their keys and certificates, as cosign's. If unset, Sigstore's public ones.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	p.created = time.Unix(created, 0).UTC()
	if p.repository == "" {
		return nil, errors.New("say where to push: make release PUSH=registry.example.org/fleetgate")
	}
	for _, needed := range []struct{ flag, value string }{
		{"version", p.version}, {"images", p.images}, {"out", p.out}, {"source", p.url},
	} {
		if needed.value == "" {
			return nil, fmt.Errorf("-%s is needed", needed.flag)
		}
	}
	return p, nil
}

// run makes a release. It checks everything that it can before the first push.
func run(ctx context.Context, args []string) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	list := filepath.Join(p.out, "digests.txt")
	if err := errors.Join(os.MkdirAll(p.out, 0o755), removeIfThere(list)); err != nil {
		return err
	}
	from, err := p.readSource(ctx)
	if err != nil {
		return err
	}
	signer, err := p.keys.open(ctx)
	if err != nil || p.check {
		return err
	}
	images, err := p.builtImages()
	if err != nil {
		return err
	}
	statements, err := p.origin(from, images)
	if err != nil {
		return err
	}
	if err := p.checkSums(); err != nil {
		return err
	}
	charts, err := p.packedCharts(images)
	if err != nil {
		return err
	}
	if err := p.push(ctx, images, charts); err != nil {
		return err
	}
	all := artifacts(images, charts, statements)
	for _, one := range all {
		if err := signer.vouch(ctx, one); err != nil {
			return err
		}
	}
	if err := signer.verifier.verifyRelease(ctx, all, images, charts); err != nil {
		return fmt.Errorf("verifying what was pushed: %w", err)
	}
	file := filepath.Join(p.out, checksums)
	if err := signer.signFile(ctx, file); err != nil {
		return err
	}
	if err := signer.verifier.verifyFile(ctx, file); err != nil {
		return err
	}
	return publish(list, all)
}

// publish writes and prints the list of digests to install.
func publish(list string, all []artifact) error {
	var text strings.Builder
	for _, one := range all {
		if one.listed {
			fmt.Fprintln(&text, one.digest.Name())
		}
	}
	fmt.Print(text.String())
	return os.WriteFile(list, []byte(text.String()), 0o644)
}

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
