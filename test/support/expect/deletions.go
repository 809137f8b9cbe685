// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"slices"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Deletions remembers what was deleted, also when it was made again at once.
type Deletions struct {
	mu    sync.Mutex // guards names
	names []string
}

// DeletedConfigMaps watches the ConfigMaps of a namespace until the spec ends.
func DeletedConfigMaps(ctx context.Context, config *rest.Config, namespace string) *Deletions {
	ginkgo.GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	watched, err := clientset.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	d, done := &Deletions{}, make(chan struct{})
	go func() {
		defer close(done)
		for event := range watched.ResultChan() {
			if object, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Deleted {
				d.mu.Lock()
				d.names = append(d.names, object.Name)
				d.mu.Unlock()
			}
		}
	}()
	ginkgo.DeferCleanup(func() {
		watched.Stop()
		gomega.Eventually(done).Should(gomega.BeClosed())
	})
	return d
}

// Names of the deleted, in the order of their deletions.
func (d *Deletions) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.names)
}
