// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// source is the state of the tree that a release is built from.
type source struct {
	// commit is the commit of HEAD.
	commit string
	// tagged is true if the commit has the tag of the version.
	tagged bool
	// changed is true if the tree has uncommitted changes.
	changed bool
}

// readSource reads the state of the tree, and rejects what others could not build again.
func (p *plan) readSource(ctx context.Context) (source, error) {
	commit, err := p.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return source{}, err
	}
	tags, err := p.git(ctx, "tag", "--points-at", "HEAD")
	if err != nil {
		return source{}, err
	}
	changes, err := p.git(ctx, "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	from := source{commit: commit, tagged: slices.Contains(strings.Fields(tags), p.version), changed: changes != ""}
	switch {
	case p.trial:
		return from, nil
	case from.changed:
		return from, errors.New("the tree has changes, and a release says from which commit it was built: commit or remove them, or say TRIAL=1")
	case !from.tagged:
		return from, fmt.Errorf("commit %s does not have the tag %s: tag it, or say TRIAL=1", commit, p.version)
	}
	return from, nil
}

// git runs git in the tree and returns its output.
func (p *plan) git(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", p.tree}, args...)...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return string(bytes.TrimSpace(out)), nil
}
