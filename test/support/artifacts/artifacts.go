// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts keeps what a failed spec leaves behind, where CI collects it:
// the logs of the clusters' programs, and the objects that their API servers hold; and of each
// suite how long its specs took.
// Secrets are left out.
package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/test/support/env"
)

// Folder is where artifacts go; empty means that nobody wants them.
const Folder = "FLEETGATE_ARTIFACTS"

// OnFailure is called once at the top of a suite: after each spec that failed, the
// logs and objects of the clusters are kept. The function is asked then, since
// suites start their clusters late.
func OnFailure(clusters func() []*env.Cluster) bool {
	Report()
	return ginkgo.JustAfterEach(func(ctx ginkgo.SpecContext) {
		root := os.Getenv(Folder)
		if root == "" || !ginkgo.CurrentSpecReport().Failed() {
			return
		}
		dir := filepath.Join(root, plain(ginkgo.CurrentSpecReport().FullText()))
		if err := Keep(ctx, dir, clusters()...); err != nil {
			ginkgo.GinkgoWriter.Println("Not all artifacts were kept:", err)
		}
		ginkgo.GinkgoWriter.Println("Logs and objects are in", dir)
	})
}

// Report is called once at the top of a suite (OnFailure does it). At the end, it prints why
// attempts failed, also when a later attempt passed. Ginkgo's own summary shows only the last
// attempt, which can fail because of state that the previous attempt left behind. A file named
// after the suite's folder with the extension .specs has this report and the duration of each spec,
// because go test hides the output of a passing suite.
func Report() bool {
	return ginkgo.ReportAfterSuite("tells why attempts failed, and how long each took", func(report ginkgo.Report) {
		failures := attempts(report)
		fmt.Print(failures)
		root := os.Getenv(Folder)
		if root == "" {
			return
		}
		file := filepath.Join(root, filepath.Base(report.SuitePath)+".specs")
		err := errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(file, []byte(durations(report)+skipped(report)+failures), 0o644))
		if err != nil {
			fmt.Println("How long each spec took was not kept:", err)
		}
	})
}

// attempts says why attempts failed that were followed by another.
func attempts(report ginkgo.Report) string {
	var text strings.Builder
	for _, spec := range report.SpecReports {
		for _, failed := range spec.AdditionalFailures {
			fmt.Fprintf(&text, "\nAn attempt failed: %s\n%s\n%s\n", spec.FullText(), failed.Failure.Location, failed.Failure.Message)
		}
	}
	return text.String()
}

// skipped says why none of the suite's specs ran, if it is so.
func skipped(report ginkgo.Report) string {
	before, specs := "", 0
	for _, spec := range report.SpecReports {
		switch {
		case spec.LeafNodeType == types.NodeTypeBeforeSuite && spec.State == types.SpecStateSkipped:
			before = spec.Failure.Message
		case spec.LeafNodeType == types.NodeTypeIt:
			specs++
		}
	}
	if before == "" {
		return ""
	}
	return fmt.Sprintf("Skipped: %d specs of %q: %s\n", specs, report.SuiteDescription, before)
}

// durations has a line for the suite, and one for each spec of it that ran, the longest first.
func durations(report ginkgo.Report) string {
	specs := slices.DeleteFunc(slices.Clone(report.SpecReports), func(s ginkgo.SpecReport) bool { return s.RunTime == 0 })
	slices.SortStableFunc(specs, func(a, b ginkgo.SpecReport) int { return cmp.Compare(b.RunTime, a.RunTime) })
	var text strings.Builder
	fmt.Fprintf(&text, "%6.1f s  %s\n", report.RunTime.Seconds(), report.SuiteDescription)
	for _, s := range specs {
		fmt.Fprintf(&text, "%6.1f s  %s %s in %d attempts: %s\n", s.RunTime.Seconds(), s.LeafNodeType, s.State, s.NumAttempts, s.FullText())
	}
	return text.String()
}

// Keep writes the logs and objects of the clusters to a folder. It keeps what it
// can and returns what went wrong with the rest.
func Keep(ctx context.Context, dir string, clusters ...*env.Cluster) error {
	var failures []error
	for _, cluster := range clusters {
		if cluster == nil {
			continue
		}
		target := filepath.Join(dir, cluster.Name)
		failures = append(failures, os.MkdirAll(target, 0o755), keepLogs(target, cluster), keepObjects(ctx, target, cluster))
	}
	return errors.Join(failures...)
}

func keepLogs(dir string, cluster *env.Cluster) error {
	var failures []error
	for _, process := range cluster.Processes() {
		log, err := os.ReadFile(process.LogPath())
		failures = append(failures, err, os.WriteFile(filepath.Join(dir, process.Name()+".log"), log, 0o644))
	}
	return errors.Join(failures...)
}

func keepObjects(ctx context.Context, dir string, cluster *env.Cluster) error {
	discoverer, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		return err
	}
	// Groups that cannot be discovered, because their server is gone, leave the others.
	lists, err := discoverer.ServerPreferredResources()
	failures := []error{err}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, resource := range list.APIResources {
			if resource.Name != "secrets" {
				failures = append(failures, keepResource(ctx, dir, client, version.WithResource(resource.Name)))
			}
		}
	}
	return errors.Join(failures...)
}

func keepResource(ctx context.Context, dir string, client dynamic.Interface, resource schema.GroupVersionResource) error {
	found, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	if len(found.Items) == 0 {
		return nil
	}
	var all []map[string]any
	for _, item := range found.Items {
		unstructured.RemoveNestedField(item.Object, "metadata", "managedFields")
		all = append(all, item.Object)
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return fmt.Errorf("writing %s: %w", resource.GroupResource(), err)
	}
	return os.WriteFile(filepath.Join(dir, resource.GroupResource().String()+".yaml"), text, 0o644)
}

// plain makes a folder's name of a spec's text.
func plain(text string) string {
	name := regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(text, "-")
	const longest = 120
	return name[:min(len(name), longest)]
}
