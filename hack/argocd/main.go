// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command argocd deploys to a cluster like Argo CD's application controller, with Argo CD's own
// packages: its database finds the cluster's Secret on the hub, its types build a client
// configuration from it, and its engine reads the whole cluster, watches it and applies manifests
// from stdin. With generate as first argument it creates the Applications of an ApplicationSet
// instead, like Argo CD's other controller. Tests start it. It is a separate module, so that Argo
// CD's dependencies never choose versions of the product's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/db"
	"github.com/argoproj/argo-cd/v3/util/settings"
	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/engine"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// revision stands in for the commit of the manifests.
const revision = "stdin"

type options struct {
	kubeconfig, argoNamespace, cluster, namespace string
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "generate" {
		return generate(ctx, args[1:], os.Stdin, os.Stdout)
	}
	flags := flag.NewFlagSet("argocd", flag.ContinueOnError)
	var o options
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig of the cluster in which Argo CD would run.")
	flags.StringVar(&o.argoNamespace, "argocd-namespace", "argocd", "Namespace with Argo CD's settings and clusters.")
	flags.StringVar(&o.cluster, "cluster", "", "Name of the cluster to deploy to, as Argo CD knows it.")
	flags.StringVar(&o.namespace, "namespace", "default", "Namespace for manifests that name none.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return run(ctx, o, os.Stdin, os.Stdout)
}

func run(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	manifests, err := kube.SplitYAML(text)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	cluster, err := find(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "cluster %s is at %s\n", cluster.Name, cluster.Server)
	return deploy(ctx, o, cluster, manifests, out)
}

// find looks the cluster up in Argo CD's database, by its name as an Application does.
func find(ctx context.Context, o options) (*v1alpha1.Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	database := db.NewDB(o.argoNamespace, settings.NewSettingsManager(ctx, client, o.argoNamespace), client)
	servers, err := database.GetClusterServersByName(ctx, o.cluster)
	if err != nil {
		return nil, fmt.Errorf("finding cluster %q: %w", o.cluster, err)
	}
	if len(servers) != 1 {
		return nil, fmt.Errorf("%d clusters have the name %q", len(servers), o.cluster)
	}
	return database.GetCluster(ctx, servers[0])
}

// deploy applies the manifests with a cache of the whole cluster, like Argo CD.
func deploy(ctx context.Context, o options, cluster *v1alpha1.Cluster, manifests []*unstructured.Unstructured, out io.Writer) error {
	config, err := cluster.RESTConfig()
	if err != nil {
		return fmt.Errorf("making a client configuration: %w", err)
	}
	// Applying passes the configuration on in a file, which cannot contain a transport.
	plain, err := cluster.RawRestConfig()
	if err != nil {
		return fmt.Errorf("making a client configuration: %w", err)
	}
	logger := klog.Background()
	state := cache.NewClusterCache(config, cache.SetLogr(logger),
		cache.SetPopulateResourceInfoHandler(func(*unstructured.Unstructured, bool) (any, bool) { return nil, true }))
	gitops := engine.NewEngine(plain, state, engine.WithLogr(logger))
	stop, err := gitops.Run()
	if err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	defer stop()
	fmt.Fprintf(out, "version %s, %d kinds, %d objects\n", state.GetServerVersion(), len(state.GetAPIResources()), len(state.FindResources("")))
	nothingElse := func(*cache.Resource) bool { return false } // Nothing is pruned.
	results, err := gitops.Sync(ctx, manifests, nothingElse, revision, o.namespace, sync.WithLogr(logger))
	if err != nil {
		return fmt.Errorf("deploying: %w", err)
	}
	var failures []error
	for _, result := range results {
		fmt.Fprintf(out, "%s %s: %s\n", result.ResourceKey.String(), result.Status, result.Message)
		if result.Status != "Synced" {
			failures = append(failures, fmt.Errorf("%s is %s: %s", result.ResourceKey.String(), result.Status, result.Message))
		}
	}
	return errors.Join(failures...)
}
