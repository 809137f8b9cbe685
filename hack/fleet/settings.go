// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	settingsFile   = "settings.json"
	defaultMembers = 2
	// maxMembers fits a small machine. Each member is a control plane of 700 MB.
	maxMembers = 9
)

// settings are the requested settings of a fleet. They are stored in its folder, so that the next
// command only has to give what changes.
type settings struct {
	Members      []string `json:"members"`
	GatewayFlags words    `json:"gatewayFlags,omitempty"`
	AgentFlags   words    `json:"agentFlags,omitempty"`
	OCM          bool     `json:"ocm,omitempty"`
	// count is the requested number of members.
	count int
}

// words are the flags of a program; nil if not given.
type words []string

func (w *words) set(value string) error {
	*w = append(words{}, strings.Fields(value)...)
	return nil
}

// merge returns the stored settings with the new ones.
func (s settings) merge(asked settings) (settings, error) {
	if asked.count < 0 || asked.count > maxMembers {
		return s, fmt.Errorf("%d members: choose from 1 to %d", asked.count, maxMembers)
	}
	want := asked.count
	if want == 0 && len(s.Members) == 0 {
		want = defaultMembers
	}
	s.Members = slices.Clone(s.Members)
	for i := 1; i <= want; i++ {
		s.add(fmt.Sprintf("member-%d", i))
	}
	if asked.GatewayFlags != nil {
		s.GatewayFlags = asked.GatewayFlags
	}
	s.OCM = s.OCM || asked.OCM
	if asked.AgentFlags != nil {
		s.AgentFlags = asked.AgentFlags
	}
	return s, nil
}

func (s *settings) add(member string) {
	if !slices.Contains(s.Members, member) {
		s.Members = append(s.Members, member)
	}
}

// checkName rejects names that a member or its folder cannot have.
func checkName(name string) error {
	if name == "" {
		return errors.New("say which: make member NAME=member-3")
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > clusterv1beta1.MaxMemberNameLength || name == "hub" || strings.HasPrefix(name, "gateway") {
		return fmt.Errorf("%q cannot be a member's name: choose a DNS label of at most %d characters, not hub and nothing that begins with gateway", name, clusterv1beta1.MaxMemberNameLength)
	}
	return nil
}

// readSettings returns the stored settings of the fleet in dir; empty for a new one.
func readSettings(dir string) (settings, error) {
	var s settings
	data, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

func (s settings) write(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, settingsFile), append(data, '\n'), 0o600)
}

// prepare creates the folder of the fleet and sets options from the stored and the new settings.
func prepare(o *fleet.Options, asked settings, more ...string) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	before, err := readSettings(o.Dir)
	if err != nil {
		return err
	}
	now, err := before.merge(asked)
	if err != nil {
		return err
	}
	for _, name := range more {
		now.add(name)
	}
	o.Members, o.GatewayArgs, o.AgentArgs, o.OCM = now.Members, now.GatewayFlags, now.AgentFlags, now.OCM
	o.Detached, o.Progress = true, progress()
	return now.write(o.Dir)
}
