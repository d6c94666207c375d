// Runs Karpenter's scheduler once and writes its plan as JSON, to be compared with ours on the same pods.
//
//	peers types          writes the instance types of Karpenter's fake provider as a document for `plan --types`
//	peers solve          reads {"pods": [...], "preferences": "Respect|Ignore"} and writes the plan
//
// The scheduler is set up as in Karpenter's own benchmark: 400 instance types, one pool without requirements, no nodes
// and no daemons, five workers. Only Solve is timed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test"
)

const (
	typeCount = 400
	workers   = 5
)

type offering struct {
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	Available    bool    `json:"available"`
}

type instanceType struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Capacity  map[string]string `json:"capacity"`
	Overhead  map[string]string `json:"overhead"`
	Offerings []offering        `json:"offerings"`
}

type input struct {
	Pods        []*corev1.Pod `json:"pods"`
	Preferences string        `json:"preferences"`
}

type node struct {
	Type         string   `json:"type"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Price        float64  `json:"price"`
	Pods         []string `json:"pods"`
}

type plan struct {
	Seconds float64 `json:"seconds"`
	// CPUSeconds is the processor time of the whole process during Solve, in all threads.
	CPUSeconds float64 `json:"cpuSeconds"`
	Nodes      []node  `json:"nodes"`
	// Queue names the pods in the order in which Solve tried them first.
	Queue       []string `json:"queue"`
	Unplaceable int      `json:"unplaceable"`
}

func main() {
	log.SetLogger(logging.NopLogger)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("expected one argument, types or solve; got %d", len(arguments))
	}
	switch arguments[0] {
	case "types":
		return json.NewEncoder(os.Stdout).Encode(describe(fake.InstanceTypes(typeCount)))
	case "solve":
		var asked input
		if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
			return fmt.Errorf("reading the pods: %w", err)
		}
		answer, err := solve(asked)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(answer)
	}
	return fmt.Errorf("expected types or solve, got %q", arguments[0])
}

func solve(asked input) (*plan, error) {
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), test.Options())
	choices := []scheduling.Options{scheduling.NumConcurrentReconciles(workers)}
	if asked.Preferences == "Ignore" {
		choices = append(choices, scheduling.IgnorePreferences)
	}
	scheduler, err := newScheduler(ctx, asked.Pods, choices)
	if err != nil {
		return nil, err
	}
	cpu, began := processorTime(), time.Now()
	results, err := scheduler.Solve(ctx, asked.Pods)
	answer := &plan{Seconds: time.Since(began).Seconds(), CPUSeconds: processorTime() - cpu}
	if err != nil {
		return nil, fmt.Errorf("scheduling: %w", err)
	}
	answer.Unplaceable = len(results.PodErrors)
	// Solve sorts the slice of pods in place into the order of its queue.
	answer.Queue = names(asked.Pods)
	for _, claim := range results.NewNodeClaims {
		launched, err := launch(claim)
		if err != nil {
			return nil, err
		}
		answer.Nodes = append(answer.Nodes, launched)
	}
	return answer, nil
}

func newScheduler(
	ctx context.Context, pods []*corev1.Pod, choices []scheduling.Options,
) (*scheduling.Scheduler, error) {
	pool := test.NodePool(v1.NodePool{Spec: v1.NodePoolSpec{Limits: v1.Limits{
		corev1.ResourceCPU:    resource.MustParse("10000000"),
		corev1.ResourceMemory: resource.MustParse("10000000Gi"),
	}}})
	pools := []*v1.NodePool{pool}
	types := map[string][]*cloudprovider.InstanceType{pool.Name: fake.InstanceTypes(typeCount)}
	provider := fake.NewCloudProvider()
	provider.InstanceTypes = types[pool.Name]
	client, now := fakeclient.NewFakeClient(), &clock.RealClock{}
	cluster := state.NewCluster(now, client, provider)
	topology, err := scheduling.NewTopology(ctx, client, cluster, nil, pools, types, pods, choices...)
	if err != nil {
		return nil, fmt.Errorf("counting the topology: %w", err)
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	return scheduling.NewScheduler(
		ctx, client, pools, cluster, nil, topology, types, nil, recorder, now, nil, nil, choices...,
	), nil
}

// launch returns the node that the fake provider makes of a claim: of the types that remain the one with the cheapest
// offering that the claim allows, in the first such offering.
func launch(claim *scheduling.NodeClaim) (node, error) {
	best := node{Price: math.Inf(1), Pods: names(claim.Pods)}
	for _, candidate := range claim.InstanceTypeOptions {
		for _, offered := range candidate.Offerings.Available().Compatible(claim.Requirements) {
			if offered.Price < best.Price {
				best.Type, best.Price = candidate.Name, offered.Price
				best.Zone, best.CapacityType = offered.Zone(), offered.CapacityType()
			}
		}
	}
	if best.Type == "" {
		return best, fmt.Errorf("a claim with %d pods has no offering", len(claim.Pods))
	}
	return best, nil
}

func describe(types []*cloudprovider.InstanceType) []instanceType {
	described := make([]instanceType, 0, len(types))
	for _, each := range types {
		one := instanceType{
			Name: each.Name,
			Labels: map[string]string{
				corev1.LabelInstanceTypeStable: each.Name,
				corev1.LabelArchStable:         each.Requirements.Get(corev1.LabelArchStable).Any(),
				corev1.LabelOSStable:           string(corev1.Linux),
			},
			Capacity: texts(each.Capacity),
			Overhead: texts(each.Overhead.Total()),
		}
		for _, offered := range each.Offerings {
			one.Offerings = append(one.Offerings, offering{
				Zone:         offered.Zone(),
				CapacityType: offered.CapacityType(),
				Price:        math.Round(offered.Price*1e9) / 1e9,
				Available:    offered.Available,
			})
		}
		described = append(described, one)
	}
	return described
}

func texts(amounts corev1.ResourceList) map[string]string {
	written := map[string]string{}
	for name, amount := range amounts {
		written[string(name)] = amount.String()
	}
	return written
}

func names(pods []*corev1.Pod) []string {
	written := make([]string, 0, len(pods))
	for _, pod := range pods {
		written = append(written, pod.Namespace+"/"+pod.Name)
	}
	return written
}

func processorTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return math.NaN()
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
