// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/env"
)

// patience is how long a slow machine may take to start a gateway, or Helm to see it.
const patience = 4 * time.Minute

// A container is the only one of a Pod, as a process.
type container struct {
	*env.Process
	of  client.Client
	pod *corev1.Pod
}

// findPod waits for the Pod of an application that is none of the known ones.
func findPod(ctx context.Context, of client.Client, application string, known ...*container) *corev1.Pod {
	GinkgoHelper()
	names := sets.New[string]()
	for _, c := range known {
		names.Insert(c.pod.Name)
	}
	var found *corev1.Pod
	Eventually(func(g Gomega) {
		var pods corev1.PodList
		g.Expect(of.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": application})).To(Succeed())
		for i := range pods.Items {
			if !names.Has(pods.Items[i].Name) && pods.Items[i].DeletionTimestamp == nil {
				found = &pods.Items[i]
			}
		}
		g.Expect(found).NotTo(BeNil(), "no Pod of "+application)
	}).Should(Succeed())
	return found
}

// prepare is what a kubelet does before it starts a container: the account's token, the
// arguments, the environment. A process has no file system of its own, so where it finds
// its API server is the one flag that a Pod does not have, and mounted are pairs of paths: in a
// Pod, and here.
func prepare(ctx context.Context, cluster *env.Cluster, of client.Client, pod *corev1.Pod, program, flag string, mounted ...string) *container {
	GinkgoHelper()
	Expect(pod.Spec.Containers).To(HaveLen(1))
	spec := pod.Spec.Containers[0]
	Expect(spec.Command).To(BeEmpty(), "the image's own command is meant")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To[int64](3600),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	Expect(of.SubResource("token").Create(ctx, account, request)).To(Succeed())
	dir, err := os.MkdirTemp(cluster.Dir, "pod-")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(dir, "kubeconfig")
	Expect(env.WriteKubeconfig(kubeconfig, &rest.Config{
		Host: cluster.URL, BearerToken: request.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CABundle},
	})).To(Succeed())
	mountConfiguration(ctx, of, pod, dir, strings.NewReplacer(mounted...))
	options := env.ProcessOptions{
		Name: program, Dir: dir, Path: released.binary(program), Args: append(spec.Args, flag+"="+kubeconfig),
		StartTimeout: patience,
	}
	for _, variable := range spec.Env {
		Expect(variable.ValueFrom).To(BeNil())
		options.Env = append(options.Env, variable.Name+"="+variable.Value)
	}
	if spec.ReadinessProbe != nil {
		options.Ready = probe(spec)
	}
	process, err := env.NewProcess(options)
	Expect(err).NotTo(HaveOccurred())
	return &container{Process: process, of: of, pod: pod}
}

// mountConfiguration writes the ConfigMap of --config into a folder, where the argument then finds it.
func mountConfiguration(ctx context.Context, of client.Client, pod *corev1.Pod, dir string, paths *strings.Replacer) {
	GinkgoHelper()
	args := pod.Spec.Containers[0].Args
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
	if at < 0 {
		return
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != "configuration" {
			continue
		}
		configuration := &corev1.ConfigMap{}
		Expect(of.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: volume.ConfigMap.Name}, configuration)).To(Succeed())
		name := filepath.Base(args[at])
		Expect(configuration.Data).To(HaveKey(name))
		args[at] = "--config=" + filepath.Join(dir, name)
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(paths.Replace(configuration.Data[name])), 0o600)).To(Succeed())
	}
}

// probe is the container's readiness probe.
func probe(spec corev1.Container) func(context.Context) error {
	GinkgoHelper()
	get := spec.ReadinessProbe.HTTPGet
	port := get.Port.IntValue()
	for _, named := range spec.Ports {
		if named.Name == get.Port.StrVal {
			port = int(named.ContainerPort)
		}
	}
	return env.Answers(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d%s", port, get.Path))
}

// startReady starts the container and says that its Pod is Ready when its probe does.
func (c *container) startReady(ctx context.Context) {
	GinkgoHelper()
	Expect(c.Start(ctx)).To(Succeed(), c.log)
	c.say(ctx, corev1.PodRunning, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

// runToEnd runs the container, which must succeed.
func (c *container) runToEnd(ctx context.Context) {
	GinkgoHelper()
	Expect(c.Start(ctx)).To(Succeed(), c.log)
	Expect(c.Wait(ctx)).To(Succeed(), c.log)
	c.say(ctx, corev1.PodSucceeded)
}

func (c *container) say(ctx context.Context, phase corev1.PodPhase, conditions ...corev1.PodCondition) {
	GinkgoHelper()
	Eventually(func() error {
		if err := c.of.Get(ctx, client.ObjectKeyFromObject(c.pod), c.pod); err != nil {
			return err
		}
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.Now() // from which minReadySeconds count
		}
		c.pod.Status.Phase, c.pod.Status.Conditions = phase, conditions
		return c.of.Status().Update(ctx, c.pod)
	}).Should(Succeed())
}

// stopWithPod ends the process when its Pod is deleted.
func (c *container) stopWithPod(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error { return c.of.Get(ctx, client.ObjectKeyFromObject(c.pod), c.pod) }).Should(Satisfy(apierrors.IsNotFound))
	Expect(c.Stop(ctx)).To(Succeed())
}

// uninstall runs the Job of a gateway's release that is being deleted, and lets the gateway
// end when the Job has its Pod deleted.
func (c *container) uninstall(ctx context.Context, hub *env.Cluster) {
	GinkgoHelper()
	job := prepare(ctx, hub, c.of, findPod(ctx, c.of, uninstallApplication), "gateway", "--kubeconfig")
	stopped := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(stopped)
		c.stopWithPod(ctx)
	}()
	job.runToEnd(ctx)
	Eventually(stopped, patience).Should(BeClosed())
}

func (c *container) log() string {
	text, err := os.ReadFile(c.LogPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}
