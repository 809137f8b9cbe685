// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// upgradesGateway rolls out another image of the gateway while it serves users. The watch
// reconnects when the server ends it, like informers do.
func upgradesGateway(ctx SpecContext) {
	Expect(hubNode.Tag(ctx, gatewayImage, nextGatewayImage)).To(Succeed())
	config, err := hub.ConfigFor("admin", "fleetgate:admins")
	Expect(err).NotTo(HaveOccurred())
	config.Host += "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/" + memberName + "/proxy"
	through, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())

	watched := watchTicks(ctx, through)
	pod := webPod(ctx)
	executed := executes(ctx, pod)
	go endsOnceGatewaysStop(ctx, pod)
	asked, last := inTheMeantime(ctx, through, func() {
		Expect(run(ctx, hub, "helm upgrade gateway charts/gateway --namespace fleet-system --reuse-values --set image.tag=next --wait --timeout=4m")).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			var pods corev1.PodList
			g.Expect(hubClient.List(ctx, &pods, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": "fleetgate-gateway"})).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(2))
			g.Expect(pods.Items).To(HaveEach(HaveField("Spec.Containers", HaveEach(HaveField("Image", nextGatewayImage)))))
		}).Should(Succeed())
	})
	AddReportEntry("requests during the upgrade", asked.String())
	GinkgoWriter.Println(asked.String())

	Expect(executed.Wait()).To(Succeed(), "exec: %s", executed.Stderr)
	Eventually(watched).Should(ContainElement(last), "the watch saw the last change")
	Expect(asked.failures).To(BeEmpty())
	expectAvailable(ctx, "shop")
}

// enough is the file of a Pod for which a command in it waits.
const enough = "/tmp/enough"

// executes starts a command in a Pod through the hub, and returns once it runs.
func executes(ctx context.Context, pod string) *exec.Cmd {
	GinkgoHelper()
	command := throughHub(ctx, "exec", pod, "--", "sh", "-c", "echo begun; until [ -e "+enough+" ]; do sleep 1; done")
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	command.Stderr = &bytes.Buffer{}
	Expect(command.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred(), "%s", command.Stderr)
	Expect(line).To(Equal("begun\n"))
	return command
}

// endsOnceGatewaysStop lets that command end, from beside the hub, when the first gateway
// has been stopping for a while: less than the 20 s that it gives to what cannot be resumed.
func endsOnceGatewaysStop(ctx context.Context, pod string) {
	defer GinkgoRecover()
	Eventually(func(g Gomega) {
		var pods corev1.PodList
		g.Expect(hubClient.List(ctx, &pods, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": "fleetgate-gateway"})).To(Succeed())
		g.Expect(pods.Items).To(ContainElement(HaveField("DeletionTimestamp", Not(BeNil()))))
	}).WithTimeout(4 * time.Minute).Should(Succeed())
	time.Sleep(10 * time.Second)
	Expect(run(ctx, member, "kubectl exec --namespace=shop "+pod+" -- touch "+enough)).Error().NotTo(HaveOccurred())
}

const (
	gatewayImage     = "ghcr.io/fleetgate/gateway:v0.1.0"
	nextGatewayImage = "ghcr.io/fleetgate/gateway:next"
)

// watchTicks follows ConfigMap web on the member through the hub, and returns what it saw.
func watchTicks(ctx context.Context, through kubernetes.Interface) func() []string {
	// mu guards seen.
	var mu sync.Mutex
	var seen []string
	maps := through.CoreV1().ConfigMaps("shop")
	informer := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, o)
		},
	}, &corev1.ConfigMap{}, 0)
	note := func(object any) {
		mu.Lock()
		defer mu.Unlock()
		if cm := object.(*corev1.ConfigMap); cm.Name == "web" {
			seen = append(seen, cm.Data["tick"])
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }})
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	DeferCleanup(func() {
		stop()
		<-done
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}

// requests counts the results of requests that were sent one after the other.
type requests struct {
	made     int
	failures []string
	// longest is the longest time between two that succeeded.
	longest time.Duration
}

func (r requests) String() string {
	return fmt.Sprintf("%d requests, %d failed, at most %s from one answer to the next: %v", r.made, len(r.failures), r.longest.Round(time.Millisecond), r.failures)
}

// inTheMeantime asks the member through the hub all the time while something is done, and
// changes what is placed once in a second. It returns what the last change was.
func inTheMeantime(ctx context.Context, through kubernetes.Interface, do func()) (requests, string) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	var asked requests
	asking.Go(func() {
		answered := time.Now()
		for ctx.Err() == nil {
			_, err := through.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
			if ctx.Err() != nil {
				return
			}
			asked.made++
			if err != nil {
				asked.failures = append(asked.failures, err.Error())
				continue
			}
			asked.longest = max(asked.longest, time.Since(answered))
			answered = time.Now()
		}
	})
	var tick int
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	asking.Go(func() {
		defer GinkgoRecover()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			patch := fmt.Appendf(nil, `{"data":{"tick":%q}}`, strconv.Itoa(tick+1))
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			// An admission webhook of the gateway's is on this way.
			if err := hubClient.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", patch)); err == nil {
				tick++
			}
		}
	})
	do()
	stop()
	asking.Wait()
	return asked, strconv.Itoa(tick)
}
