// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// Backup copies etcd's data into a new folder. It stops etcd meanwhile, and the API server waits.
func (c *Cluster) Backup(ctx context.Context, dir string) error {
	if err := c.Etcd.Stop(ctx); err != nil {
		return fmt.Errorf("cluster %s: backing up: %w", c.Name, err)
	}
	err := os.CopyFS(dir, os.DirFS(c.path("etcd")))
	return errors.Join(err, c.Etcd.Start(ctx))
}

// Restore replaces etcd's data by a folder of Backup and restarts the cluster's programs. As
// Kubernetes requires, and like etcdutl with --bump-revision and --mark-compacted, no revision is
// used twice and earlier watches must start again.
func (c *Cluster) Restore(ctx context.Context, dir string) error {
	if err := c.restore(ctx, dir); err != nil {
		return fmt.Errorf("cluster %s: restoring: %w", c.Name, err)
	}
	return c.Resume(ctx)
}

// Lose restarts the cluster with an empty etcd, like a cluster that was rebuilt with the same CAs
// and keys.
func (c *Cluster) Lose(ctx context.Context) error {
	if err := c.empty(ctx); err != nil {
		return fmt.Errorf("cluster %s: losing all: %w", c.Name, err)
	}
	return c.Resume(ctx)
}

// LetAnonymousIn makes the API server accept anonymous requests from its next start on, as it does
// by default.
func (c *Cluster) LetAnonymousIn() error {
	return os.WriteFile(c.path(authenticationFile), []byte(strings.Split(authenticationConfig, "anonymous:")[0]), 0o600)
}

// empty stops the cluster's programs and removes etcd's data.
func (c *Cluster) empty(ctx context.Context) error {
	for _, p := range []*Process{c.KWOK, c.Scheduler, c.ControllerManager, c.APIServer, c.Etcd} {
		if p == nil {
			continue
		}
		if err := p.Stop(ctx); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.path("etcd"))
}

func (c *Cluster) restore(ctx context.Context, dir string) error {
	last, err := c.etcdRevision(ctx)
	if err != nil {
		return err
	}
	if err := c.empty(ctx); err != nil {
		return err
	}
	if err := os.CopyFS(c.path("etcd"), os.DirFS(dir)); err != nil {
		return err
	}
	if err := c.Etcd.Start(ctx); err != nil {
		return err
	}
	revision, err := c.etcdRevision(ctx)
	for err == nil && revision <= last {
		revision, err = c.askEtcd(ctx, "kv/put", map[string]any{"key": []byte("fleetgate.io/bumped"), "value": []byte{}})
	}
	if err != nil {
		return err
	}
	_, err = c.askEtcd(ctx, "kv/compaction", map[string]any{"revision": strconv.FormatInt(revision, 10)})
	return err
}

// Fill makes etcd reject every write, as when its quota is used up.
func (c *Cluster) Fill(ctx context.Context) error { return c.alarm(ctx, "ACTIVATE") }

// Drain makes etcd accept writes again.
func (c *Cluster) Drain(ctx context.Context) error { return c.alarm(ctx, "DEACTIVATE") }

func (c *Cluster) alarm(ctx context.Context, action string) error {
	_, err := c.askEtcd(ctx, "maintenance/alarm", map[string]any{"action": action, "alarm": "NOSPACE"})
	return err
}

func (c *Cluster) etcdRevision(ctx context.Context) (int64, error) {
	return c.askEtcd(ctx, "kv/range", map[string]any{"key": []byte("/"), "count_only": true})
}

// askEtcd sends a request to etcd's JSON gateway and returns its current revision.
func (c *Cluster) askEtcd(ctx context.Context, verb string, question map[string]any) (int64, error) {
	config, err := rest.TLSConfigFor(c.etcdConfig())
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(question)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdConfig().Host+"/v3/"+verb, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking etcd for %s: %w", verb, err)
	}
	defer response.Body.Close()
	var answer struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		Message string `json:"message"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		return 0, errors.Join(fmt.Errorf("asking etcd for %s: %s %s", verb, response.Status, answer.Message), err)
	}
	return answer.Header.Revision, nil
}
