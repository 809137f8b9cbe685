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

// plan is what to release, and how: the flags.
type plan struct {
	// repository is where images and charts go, without the name of either.
	repository, version string
	// tree is the folder of the checkout; images and charts are the folders that
	// `make images` has written and that charts lie in.
	// plugin is that of the kubectl plugin's archives; empty: none are signed.
	tree, images, charts, plugin string
	helm, out                    string
	// url is where the source is for others.
	url string
	// created is the time that everything made here has.
	created time.Time
	// trial takes a tree that is no commit with the version's tag.
	trial bool
	// check ends it before anything is pushed.
	check bool
	keys  keys
}

func parse(args []string) (*plan, error) {
	p := &plan{}
	var created int64
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&p.repository, "push", "", "Registry and path to push to, without the name of an image, with the credentials of docker login.")
	flags.StringVar(&p.version, "version", "", "Version of images and charts, and the tag that the commit has to have.")
	flags.StringVar(&p.tree, "tree", ".", "Folder of the checkout.")
	flags.StringVar(&p.images, "images", "", "Folder with the OCI layouts and SBOMs of the images.")
	flags.StringVar(&p.charts, "charts", "", "Folder with the charts.")
	flags.StringVar(&p.plugin, "plugin", "", "Folder with the kubectl plugin's archives and Krew's manifest, which are signed there. Empty: none are.")
	flags.StringVar(&p.helm, "helm", "helm", "The program that packs and pushes charts.")
	flags.StringVar(&p.out, "out", "", "Folder to write to.")
	flags.StringVar(&p.url, "source", "", "URL at which others find the source's repository.")
	flags.Int64Var(&created, "created", 0, "Time of the commit, in seconds since 1970. The same value gives the same charts.")
	flags.BoolVar(&p.trial, "trial", false, "Release a tree with changes, or a commit without the version's tag, too; statements say so.")
	flags.BoolVar(&p.check, "check", false, "Only look whether this tree may be released, and whether there is what signs.")
	flags.StringVar(&p.keys.file, "key", "", "File with a private key of cosign, whose password is in COSIGN_PASSWORD. Empty: keyless, with the token of the environment.")
	flags.BoolVar(&p.keys.logged, "transparency-log", false, "Record signatures made with -key in the log too. Keyless they always are.")
	flags.StringVar(&p.keys.identity, "identity", "", "Keyless: whom the certificate has to be for, as cosign's --certificate-identity.")
	flags.StringVar(&p.keys.issuer, "issuer", "", "Keyless: who has to have issued the token, as cosign's --certificate-oidc-issuer.")
	flags.StringVar(&p.keys.services, "signing-config", "", "File that names Fulcio, Rekor and timestamp authority, as cosign's. Empty: Sigstore's public ones.")
	flags.StringVar(&p.keys.roots, "trusted-root", "", "File with the keys and certificates of those, as cosign's. Empty: Sigstore's public ones.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	p.created = time.Unix(created, 0).UTC()
	if p.repository == "" {
		return nil, errors.New("say where to push: make release PUSH=registry.example.org/fleetgate")
	}
	for _, needed := range []struct{ flag, value string }{
		{"version", p.version}, {"images", p.images}, {"charts", p.charts}, {"out", p.out}, {"source", p.url},
	} {
		if needed.value == "" {
			return nil, fmt.Errorf("-%s is needed", needed.flag)
		}
	}
	return p, nil
}

// run makes a release. What can be refused is refused before anything is pushed.
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
	files, err := p.pluginFiles()
	if err != nil {
		return err
	}
	charts, err := p.packCharts(ctx, images)
	if err != nil {
		return err
	}
	defer charts.remove()
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
	for _, file := range files {
		if err := errors.Join(signer.signFile(ctx, file), signer.verifier.verifyFile(ctx, file)); err != nil {
			return err
		}
	}
	return publish(list, all)
}

// publish writes the list of the digests to install, and prints it.
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
