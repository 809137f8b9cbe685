// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// ClusterFile is the file with the state of a cluster.
const ClusterFile = "cluster.json"

// Cluster is a control plane on loopback. Its fields do not change. Its programs can be stopped,
// frozen and restarted one by one.
type Cluster struct {
	// Name is the name from Options.
	Name string
	// Dir is the cluster's folder.
	Dir string
	// URL is the API server's, on loopback.
	URL string
	// CABundle is the CA for the API server, as PEM.
	CABundle []byte

	Etcd              *Process
	APIServer         *Process
	ControllerManager *Process
	// Scheduler and KWOK are nil in a cluster without nodes, KWOK in one whose nodes are real.
	Scheduler *Process
	KWOK      *Process

	options   Options
	ports     ports
	users     *authority
	config    *rest.Config
	temporary bool
}

// state is what Load needs in addition to the files of the folder.
type state struct {
	Options Options `json:"options"`
	Ports   ports   `json:"ports"`
}

// Start creates a cluster and returns when controllers run and nodes accept Pods. If a program does
// not start, it stops everything and returns a *StartError; logs stay in the cluster's folder. It
// rejects a folder with a cluster: use Load.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := o.checkPrograms(); err != nil {
		return nil, err
	}
	c, err := startNew(ctx, o)
	if lostPort(err) {
		o.Progress(o.Name + ": another program took a port, starting again with others")
		c, err = startNew(ctx, o)
	}
	return c, err
}

// StartAll starts clusters in parallel, all or none. The result is in the order of options.
func StartAll(ctx context.Context, options ...Options) ([]*Cluster, error) {
	clusters := make([]*Cluster, len(options))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, o := range options {
		group.Go(func() (err error) {
			clusters[i], err = Start(groupCtx, o)
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		return clusters, nil
	}
	for _, c := range clusters {
		if c != nil {
			err = errors.Join(err, c.Stop(ctx))
		}
	}
	return nil, err
}

// Load finds the cluster in a folder, running or not. The error is fs.ErrNotExist if there is none.
func Load(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("loading the cluster in %s: %w", dir, err)
	}
	var s state
	if err := readJSON(filepath.Join(dir, ClusterFile), &s); err != nil {
		return nil, fmt.Errorf("loading the cluster in %s: %w", dir, err)
	}
	s.Options.Dir = dir
	o, err := s.Options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("loading the cluster in %s: %w", dir, err)
	}
	c := &Cluster{Name: o.Name, Dir: dir, options: o, ports: s.Ports}
	if err := HoldPorts(s.Ports.Etcd, s.Ports.APIServer); err != nil {
		return nil, fmt.Errorf("loading the cluster in %s: %w", dir, err)
	}
	if c.users, err = c.loadSecrets(); err != nil {
		return nil, fmt.Errorf("loading the cluster in %s: %w", dir, err)
	}
	if err := c.prepare(); err != nil {
		return nil, fmt.Errorf("loading the cluster in %s: %w", dir, err)
	}
	return c, nil
}

// Resume starts the stopped programs on the same ports and data, and returns when the cluster
// works. After an error, started programs keep running: use Stop.
func (c *Cluster) Resume(ctx context.Context) error {
	if err := c.options.checkPrograms(); err != nil {
		return err
	}
	for _, step := range [][]*Process{{c.Etcd}, {c.APIServer}, {c.ControllerManager, c.Scheduler, c.KWOK}} {
		group, groupCtx := errgroup.WithContext(ctx)
		for _, p := range step {
			if p == nil || p.Running() {
				continue
			}
			c.options.Progress(c.Name + ": starting " + p.Name())
			group.Go(func() error { return p.Start(groupCtx) })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	return c.checkRunning()
}

// checkRunning finds a program that ended soon after it was ready, or that has no readiness check.
func (c *Cluster) checkRunning() error {
	for _, p := range c.Processes() {
		if !p.Running() {
			return fmt.Errorf("cluster %s: %w", c.Name, p.startError(p.current(), errors.New("it ended")))
		}
	}
	return nil
}

// Stop ends every program, writers before their servers. It removes a temporary folder; another one
// keeps data and logs for Resume.
func (c *Cluster) Stop(ctx context.Context) error {
	if c.temporary {
		return c.discard()
	}
	for _, step := range [][]*Process{{c.KWOK, c.Scheduler, c.ControllerManager}, {c.APIServer}, {c.Etcd}} {
		var group errgroup.Group
		for _, p := range step {
			if p != nil {
				group.Go(func() error { return p.Stop(ctx) })
			}
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	return nil
}

// Freeze stops every program of the cluster (SIGSTOP), as if its machines hung, until Thaw.
func (c *Cluster) Freeze() error { return c.each((*Process).Freeze) }

// Thaw resumes the programs after Freeze.
func (c *Cluster) Thaw() error { return c.each((*Process).Thaw) }

// Running reports whether every program of the cluster runs.
func (c *Cluster) Running() bool {
	for _, p := range c.Processes() {
		if !p.Running() {
			return false
		}
	}
	return true
}

// Processes are the cluster's programs, in the order in which they start.
func (c *Cluster) Processes() []*Process {
	var all []*Process
	for _, p := range []*Process{c.Etcd, c.APIServer, c.ControllerManager, c.Scheduler, c.KWOK} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

func (c *Cluster) each(do func(*Process) error) error {
	var errs []error
	for _, p := range c.Processes() {
		errs = append(errs, do(p))
	}
	return errors.Join(errs...)
}

// startNew is one attempt on ports that were free a moment ago.
func startNew(ctx context.Context, o Options) (*Cluster, error) {
	begin := time.Now()
	c := &Cluster{Name: o.Name, options: o}
	if err := c.makeFolder(); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	free, err := FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	c.ports = ports{Etcd: free[0], APIServer: free[1]}
	if err := c.create(); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	if err := c.Resume(ctx); err != nil {
		return nil, errors.Join(err, c.undo())
	}
	o.Progress(fmt.Sprintf("%s: ready after %.1f s at %s", c.Name, time.Since(begin).Seconds(), c.URL))
	return c, nil
}

func (c *Cluster) makeFolder() (err error) {
	if c.temporary = c.options.Dir == ""; c.temporary {
		c.Dir, err = os.MkdirTemp("", "fleetgate-"+c.Name+"-")
		return err
	}
	if c.Dir, err = filepath.Abs(c.options.Dir); err != nil {
		return err
	}
	if _, err := os.Stat(c.path(ClusterFile)); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds a cluster already: load it, or stop it and remove the folder", c.Dir)
	}
	return os.MkdirAll(c.Dir, 0o700)
}

// create writes all files that the programs read.
func (c *Cluster) create() (err error) {
	if c.users, err = c.makeSecrets(); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	return writeJSON(c.path(ClusterFile), state{Options: c.options, Ports: c.ports})
}

// prepare sets what follows from folder, ports and keys.
func (c *Cluster) prepare() (err error) {
	c.URL = "https://" + c.at(c.ports.APIServer)
	c.CABundle = c.users.cert
	if c.config, err = c.ConfigFor(BreakGlass, mastersGroup); err != nil {
		return err
	}
	return c.makeProcesses()
}

// at returns the address of a port of the cluster.
func (c *Cluster) at(port int) string { return loopback(c.options.addresses().loopback, port) }

// undo kills a cluster that did not start and removes its data; logs stay.
func (c *Cluster) undo() error {
	return errors.Join(c.each((*Process).Kill), os.RemoveAll(c.path("etcd")), os.RemoveAll(c.path(ClusterFile)))
}

// discard kills a cluster and removes everything.
func (c *Cluster) discard() error {
	return errors.Join(c.each((*Process).Kill), os.RemoveAll(c.Dir))
}

func lostPort(err error) bool {
	var start *StartError
	return errors.As(err, &start) && strings.Contains(start.LogTail, "address already in use")
}
